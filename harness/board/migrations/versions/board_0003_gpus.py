"""An entry says which GPU of its model it was graded on: version 3 of the file."""

import json

import sqlalchemy as sa
from alembic import op

revision = "board_0003"
down_revision = "board_0002"

entries = sa.table("entries", sa.column("id"), sa.column("uuid"))
reports = sa.table("reports", sa.column("id"), sa.column("report"))


def upgrade() -> None:
    op.add_column("entries", sa.Column("uuid", sa.Text(), nullable=True))
    connection = op.get_bind()
    # Not in SQL: PostgreSQL reads no JSON with a zero character, which a kernel may have printed.
    every = sa.select(reports.c.id, reports.c.report).execution_options(yield_per=100)
    for id, report in connection.execute(every):
        device = json.loads(report).get("device") or {}
        if device.get("uuid"):
            connection.execute(
                sa.update(entries).where(entries.c.id == id).values(uuid=device["uuid"])
            )
