"""The board's entries have an accuracy grade."""

revision = "arena_0007"
down_revision = "arena_0006"
depends_on = "board_0005"


def upgrade() -> None:
    """Change nothing but the board's tables, on which this depends."""
