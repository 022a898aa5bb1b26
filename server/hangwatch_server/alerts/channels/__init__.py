"""The ways to reach people and machines: each kind of channel is one module here."""
