"""Which stacks a part holds, as short keys, so that equal ones need not be read from every part.

Older parts stay without: they are read in full, as before.
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE capture_parts ADD COLUMN outline bytea")
