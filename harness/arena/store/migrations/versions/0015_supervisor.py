"""A worker's lease alone says whether another one may replace it."""

from alembic import op

revision = "arena_0015"
down_revision = "arena_0014"


def upgrade() -> None:
    op.drop_column("workers", "supervisor")
