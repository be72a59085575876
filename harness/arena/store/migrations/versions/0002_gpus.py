"""An entry says which GPU of its model it was graded on."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("entries", sa.Column("uuid", sa.Text(), nullable=True))
    op.execute(
        "UPDATE entries SET uuid = reports.report::jsonb -> 'device' ->> 'uuid' "
        "FROM reports WHERE reports.id = entries.id"
    )
