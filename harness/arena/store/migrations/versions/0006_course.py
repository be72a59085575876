"""Columns for a course: logins, sections, extensions; sessions end with their key."""

import sqlalchemy as sa
from alembic import op

revision = "arena_0006"
down_revision = "arena_0005"


def _text(name: str, comment: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=True, comment=comment)


def upgrade() -> None:
    op.add_column("sessions", _text("key", "by which the person signed in"))
    op.create_foreign_key(op.f("fk_sessions_key"), "sessions", "keys", ["key"], ["hash"])
    op.add_column("people", _text("login", "in the course's roster: an e-mail address, say"))
    op.add_column("people", _text("section", "the group of the course"))
    op.add_column("people", _text("pseudonym", "the name on the boards, where the rules want one"))
    extended: sa.Column[object] = sa.Column(
        "extended",
        sa.DateTime(timezone=True),
        nullable=True,
        comment="a deadline of this person's own",
    )
    op.add_column("people", extended)
    op.add_column("invitations", _text("name", "of the one person whom the roster names"))
    op.add_column("invitations", _text("login"))
    op.add_column("invitations", _text("section"))
