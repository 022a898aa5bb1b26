"""The life cycle of incidents: what to do (`lifecycle`, pure) and doing it (`keeper`)."""
