"""Add the accuracy grade to the entries."""

import json

import sqlalchemy as sa
from alembic import op

revision = "board_0005"
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
