"""The gradings that wait are the queue, without the tables and functions of a library.

Nobody listens for changes, workers are not drained, and no limit counts seconds of grading.
"""

from alembic import op

revision = "arena_0012"
down_revision = "arena_0011"

TABLES = ("events", "periodic_defers", "jobs", "workers")
TYPES = ("job_status", "job_event_type", "job_to_defer_v1")


def upgrade() -> None:
    for name in TABLES:
        op.execute(f"DROP TABLE procrastinate_{name} CASCADE")
    op.execute(_NO_FUNCTIONS)
    for name in TYPES:
        op.execute(f"DROP TYPE procrastinate_{name}")
    op.execute("DROP FUNCTION arena_tell() CASCADE")
    op.drop_column("workers", "draining")
    op.drop_column("gradings", "seconds")
    op.drop_index("ix_gradings_ended", "gradings")


_NO_FUNCTIONS = """DO $$ DECLARE function regprocedure; BEGIN
    FOR function IN SELECT oid FROM pg_proc
        WHERE proname LIKE 'procrastinate\\_%' AND pronamespace = 'public'::regnamespace
    LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', function);
    END LOOP;
END $$"""
