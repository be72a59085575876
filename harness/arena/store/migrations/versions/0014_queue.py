"""The gradings that wait are the queue: it needs no tables of its own, and nobody is notified."""

from alembic import op

revision = "arena_0014"
down_revision = "arena_0013"


def upgrade() -> None:
    op.execute(
        """
        DROP TRIGGER arena_tell ON gradings;
        DROP FUNCTION arena_tell;
        CREATE OR REPLACE FUNCTION arena_count_board() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE board_version SET number = number + 1 WHERE xmin <> pg_current_xact_id()::xid;
            RETURN NULL;
        END $$;
        """
    )
    op.execute(_NO_PROCRASTINATE)


_NO_PROCRASTINATE = """DO $$ DECLARE statement text; BEGIN
    FOR statement IN
        SELECT format('DROP FUNCTION %s CASCADE', oid::regprocedure) FROM pg_proc
            WHERE proname LIKE 'procrastinate\\_%' AND pronamespace = 'public'::regnamespace
    LOOP EXECUTE statement; END LOOP;
    FOR statement IN
        SELECT format('DROP TABLE %s CASCADE', oid::regclass) FROM pg_class
            WHERE relname LIKE 'procrastinate\\_%' AND relnamespace = 'public'::regnamespace
                AND relkind = 'r'
    LOOP EXECUTE statement; END LOOP;
    FOR statement IN
        SELECT format('DROP TYPE %s CASCADE', oid::regtype) FROM pg_type
            WHERE typname LIKE 'procrastinate\\_%' AND typnamespace = 'public'::regnamespace
    LOOP EXECUTE statement; END LOOP;
END $$"""
