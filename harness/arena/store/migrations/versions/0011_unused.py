"""Drop what nothing reads any more."""

from alembic import op

revision = "arena_0011"
down_revision = "arena_0010"


def upgrade() -> None:
    op.drop_table("announcements")
    op.drop_column("workers", "clock_ahead")
    op.drop_column("workers", "set_aside")
