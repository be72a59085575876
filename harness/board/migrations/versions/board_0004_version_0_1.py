"""The tables of version 0.1, from which an upgrade begins. A new board has today's at once."""

revision = "board_0004"
down_revision = None
branch_labels = ("board",)


def upgrade() -> None:
    """Change nothing: no database is older."""
