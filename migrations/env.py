"""Alembic's entry: runs the migrations on the connection that `db.migrate` hands over.

There is no alembic.ini and no offline mode; the server upgrades its own database when it starts.
"""

from __future__ import annotations

from alembic import context

from hangwatch_server.db import tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables.metadata,
)
with context.begin_transaction():
    context.run_migrations()
