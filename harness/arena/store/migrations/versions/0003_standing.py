"""The board's reports may have been imported: which of them stand on the arena's board."""

from alembic import op

revision = "arena_0003"
down_revision = "arena_0002"
depends_on = "board_0004"


def upgrade() -> None:
    op.create_index(
        "ix_gradings_report",
        "gradings",
        ["report"],
        postgresql_ops={"report": "text_pattern_ops"},
    )
    op.execute(
        """CREATE OR REPLACE VIEW standing AS
        SELECT g.report AS id, true AS graded_here, s.received AS handed_in
            FROM submissions s JOIN gradings g ON g.id = s.counts
            WHERE s.withdrawn IS NULL AND s.disqualified IS NULL
        UNION ALL
        SELECT e.id, false, NULL FROM entries e
            WHERE NOT EXISTS (SELECT FROM gradings g WHERE g.report = e.id)"""
    )
    # A result is entered together with what makes it count; of an import there is nothing else.
    op.execute(
        """CREATE TRIGGER arena_count_board AFTER INSERT ON entries
        FOR EACH STATEMENT EXECUTE FUNCTION arena_count_board()"""
    )
