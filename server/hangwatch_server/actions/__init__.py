"""The operator's own command on a confirmed hang: off unless set, bounded, and written down."""
