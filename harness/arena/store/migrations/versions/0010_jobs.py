"""The queue holds only the jobs of gradings that wait, and a job names its grading."""

from alembic import op

revision = "arena_0010"
down_revision = "arena_0009"


def upgrade() -> None:
    op.execute("DELETE FROM procrastinate_jobs WHERE status <> 'todo'")
    op.drop_column("gradings", "job")
