"""The tables of version 0.1, from which an upgrade begins. A new arena has today's at once."""

revision = "arena_0004"
down_revision = None
branch_labels = ("arena",)
depends_on = "board_0004"


def upgrade() -> None:
    """Change nothing: no database is older."""
