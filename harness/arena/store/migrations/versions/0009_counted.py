"""The board's view of the entries that count has a new name."""

revision = "arena_0009"
down_revision = "arena_0008"
depends_on = "board_0006"


def upgrade() -> None:
    """Change nothing but the board's view, on which this depends."""
