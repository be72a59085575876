"""The tables of version 0.2: an accuracy grade, and another name of the view of what counts."""

import json

import sqlalchemy as sa
from alembic import op

revision = "board_0006"
down_revision = "board_0004"

entries = sa.table("entries", sa.column("id"), sa.column("accuracy"))
reports = sa.table("reports", sa.column("id"), sa.column("report"))


def upgrade() -> None:
    op.add_column("entries", sa.Column("accuracy", sa.Text(), nullable=True))
    connection = op.get_bind()
    graded = sa.select(reports.c.id, reports.c.report).where(reports.c.report.like('%"accuracy"%'))
    for id, report in connection.execute(graded.execution_options(yield_per=100)):
        found = (json.loads(report).get("accuracy") or {}).get("grade")
        if found:
            connection.execute(sa.update(entries).where(entries.c.id == id).values(accuracy=found))
    if connection.dialect.name == "sqlite":  # which renames no view
        op.execute("DROP VIEW standing")
        op.execute(
            "CREATE VIEW counted AS SELECT id, 0 AS graded_here, NULL AS submitted FROM entries"
        )
    else:
        op.execute("ALTER VIEW standing RENAME TO counted")
        op.execute("ALTER VIEW counted RENAME COLUMN handed_in TO submitted")
