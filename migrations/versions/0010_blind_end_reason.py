"""Why a blind spell ended, where it did not because Hangwatch sees again."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE blind_spells ADD COLUMN end_reason text NOT NULL DEFAULT ''")
