"""A change of the board and its number become visible together."""

from alembic import op

revision = "arena_0013"
down_revision = "arena_0012"


def upgrade() -> None:
    op.execute(
        """
        DROP TRIGGER arena_count_board ON submissions;
        DROP TRIGGER arena_count_board ON entries;
        ALTER SEQUENCE board_version RENAME TO board_version_before;
        CREATE TABLE board_version AS SELECT last_value + 1 AS number FROM board_version_before;
        ALTER TABLE board_version ALTER COLUMN number SET NOT NULL;
        DROP SEQUENCE board_version_before;
        CREATE OR REPLACE FUNCTION arena_count_board() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE board_version SET number = number + 1 WHERE xmin <> pg_current_xact_id()::xid;
            PERFORM pg_notify('arena', 'board');
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER arena_count_board
            AFTER UPDATE OF counts, withdrawn, disqualified ON submissions
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION arena_count_board();
        CREATE CONSTRAINT TRIGGER arena_count_board AFTER INSERT ON entries
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION arena_count_board();
        """
    )
