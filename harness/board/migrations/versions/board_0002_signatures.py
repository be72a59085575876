"""Who vouches for a report, and which reports are no longer believed: version 2 of the file."""

import sqlalchemy as sa
from alembic import op

revision = "board_0002"
down_revision = "board_0001"


def upgrade() -> None:
    op.create_table(
        "signatures",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["reports.id"], name=op.f("fk_signatures_id")),
        sa.PrimaryKeyConstraint("id", "key", name=op.f("pk_signatures")),
        sqlite_strict=True,
    )
    op.create_table(
        "refused",
        sa.Column("report", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sqlite_strict=True,
    )
