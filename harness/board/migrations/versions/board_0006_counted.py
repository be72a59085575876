"""Rename the view of the entries that count."""

from alembic import op

revision = "board_0006"
down_revision = "board_0005"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":  # which renames no view
        op.execute("DROP VIEW standing")
        op.execute(
            "CREATE VIEW counted AS SELECT id, 0 AS graded_here, NULL AS submitted FROM entries"
        )
    else:
        op.execute("ALTER VIEW standing RENAME TO counted")
        op.execute("ALTER VIEW counted RENAME COLUMN handed_in TO submitted")
