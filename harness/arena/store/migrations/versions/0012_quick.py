"""An attempt keeps whether it was to be a quick grading."""

import sqlalchemy as sa
from alembic import op

revision = "arena_0012"
down_revision = "arena_0011"


def upgrade() -> None:
    column: sa.Column[bool] = sa.Column(
        "quick", sa.Boolean(), nullable=False, server_default=sa.text("false")
    )
    op.add_column("attempts", column)
