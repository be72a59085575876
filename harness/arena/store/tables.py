"""The arena's tables.

A submission is a file from one person. Each time that it is graded is a grading; each time that a
worker begins a grading is an attempt. The reports and their index are the board's
(harness/board/tables.py).
"""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from harness.board.tables import NAMING, reports

metadata = sa.MetaData(naming_convention=NAMING)


def _now() -> sa.Column[object]:
    return sa.Column(
        "created", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
    )


def _number() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True)


def _person(name: str = "person", *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, sa.ForeignKey("people.id"), nullable=nullable)


people = sa.Table(
    "people",
    metadata,
    _number(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    _now(),
    sa.Column("disabled", sa.DateTime(timezone=True)),
    sa.Column("issuer", sa.Text, comment="of the OpenID provider that vouches for this person"),
    sa.Column("subject", sa.Text, comment="who this is at that provider"),
    sa.Column("login", sa.Text, comment="in the course's roster: an e-mail address, say"),
    sa.Column("section", sa.Text, comment="the group of the course"),
    sa.Column("pseudonym", sa.Text, comment="the name on the boards, where the rules want one"),
    sa.Column("extended", sa.DateTime(timezone=True), comment="a deadline of this person's own"),
    sa.CheckConstraint("role IN ('contestant', 'organiser')", name="role"),
    sa.UniqueConstraint("issuer", "subject"),
    sa.Index("ix_people_name_unique", sa.func.lower(sa.text("name")), unique=True),
    sa.Index("ix_people_pseudonym_unique", "pseudonym", unique=True),
)

keys = sa.Table(
    "keys",
    metadata,
    sa.Column(
        "hash", sa.Text, primary_key=True, comment="sha256 of a key: the key itself is not kept"
    ),
    _person(),
    sa.Column("label", sa.Text, nullable=False),
    _now(),
    sa.Column("expires", sa.DateTime(timezone=True)),
    sa.Column("revoked", sa.DateTime(timezone=True)),
    sa.Index(None, "person"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True, comment="sha256 of what the cookie holds"),
    _person(),
    sa.Column("key", sa.Text, sa.ForeignKey("keys.hash"), comment="by which the person signed in"),
    _now(),
    sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    sa.Index(None, "person"),
)

invitations = sa.Table(
    "invitations",
    metadata,
    _number(),
    sa.Column(
        "hash", sa.Text, nullable=False, unique=True, comment="sha256 of what the link holds"
    ),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("name", sa.Text, comment="of the one person whom the roster names"),
    sa.Column("login", sa.Text),
    sa.Column("section", sa.Text),
    sa.Column("uses_left", sa.Integer, nullable=False),
    _person("made_by"),
    _now(),
    sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("uses_left >= 0", name="uses_left"),
    sa.CheckConstraint("role IN ('contestant', 'organiser')", name="role"),
)

submissions = sa.Table(
    "submissions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True, comment="random: not to be guessed or counted"),
    _person(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("received", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("counts", sa.BigInteger, comment="the grading whose report is the result"),
    sa.Column("withdrawn", sa.DateTime(timezone=True)),
    sa.Column("disqualified", sa.Text, comment="why"),
    sa.UniqueConstraint("person", "idempotency_key"),
    sa.Index(None, "person", "received"),
    sa.Index(None, "received"),
)

rejudges = sa.Table(
    "rejudges",
    metadata,
    _number(),
    _person("made_by"),
    sa.Column("reason", sa.Text, nullable=False),
    _now(),
    sa.Column("applied", sa.DateTime(timezone=True)),
    sa.Column("dropped", sa.DateTime(timezone=True)),
)

gradings = sa.Table(
    "gradings",
    metadata,
    _number(),
    sa.Column("submission", sa.Text, sa.ForeignKey("submissions.id"), nullable=False),
    sa.Column("rejudge", sa.BigInteger, sa.ForeignKey("rejudges.id")),
    _person(),  # the person whose place in the queue it uses: an organiser if it is a regrading
    sa.Column("turn", sa.Integer, nullable=False),
    sa.Column("model", sa.Text, comment="of GPU; none: any worker"),
    sa.Column("state", sa.Text, nullable=False, server_default="queued"),
    sa.Column("attempt", sa.Uuid, comment="the attempt that holds it"),
    sa.Column("attempts", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("queued", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    sa.Column("started", sa.DateTime(timezone=True)),
    sa.Column("seen", sa.DateTime(timezone=True), comment="the attempt's last sign of life"),
    sa.Column("ended", sa.DateTime(timezone=True)),
    sa.Column("progress", JSONB(none_as_null=True)),
    sa.Column("verdict", sa.Text),
    sa.Column("report", sa.Text, sa.ForeignKey(reports.c.id)),
    sa.Column("seconds", sa.Float, comment="that a worker spent on it, dead attempts included"),
    sa.CheckConstraint("state IN ('queued', 'grading', 'done', 'cancelled')", name="state"),
    sa.CheckConstraint("(state = 'grading') = (attempt IS NOT NULL)", name="held_by_an_attempt"),
    sa.CheckConstraint("(state = 'done') = (report IS NOT NULL)", name="done_with_a_report"),
    sa.Index(None, "submission"),
    sa.Index(None, "rejudge"),
    sa.Index(None, "person", "turn"),
    sa.Index("ix_gradings_waiting", "turn", "id", postgresql_where=sa.text("state = 'queued'")),
    sa.Index("ix_gradings_held", "id", postgresql_where=sa.text("state = 'grading'")),
    sa.Index("ix_gradings_started_turn", "turn", postgresql_where=sa.text("started IS NOT NULL")),
    sa.Index("ix_gradings_ended", "ended"),
    sa.Index("ix_gradings_report", "report", postgresql_ops={"report": "text_pattern_ops"}),
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("grading", sa.BigInteger, sa.ForeignKey("gradings.id"), nullable=False),
    sa.Column("number", sa.SmallInteger, nullable=False),
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("worker_id", sa.Text, sa.ForeignKey("workers.id")),
    sa.Column("quick", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("started", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    sa.Column("ended", sa.DateTime(timezone=True)),
    sa.Column("fate", sa.Text),
    sa.CheckConstraint("fate IN ('finished', 'died', 'given back', 'cancelled')", name="fate"),
    sa.UniqueConstraint("grading", "number"),
    sa.Index("ix_attempts_open", "worker_id", postgresql_where=sa.text("ended IS NULL")),
)

worker_keys = sa.Table(
    "worker_keys",
    metadata,
    _number(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False, unique=True, comment="sha256 of the worker key"),
    sa.Column("own", sa.Boolean, nullable=False, server_default=sa.text("false")),
    _now(),
    sa.Column("revoked", sa.DateTime(timezone=True)),
)
"""The machines whose workers may grade. The arena's own workers have one of these keys, too."""

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True, comment="the GPU's UUID; for a CPU a name"),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("machine", sa.BigInteger, sa.ForeignKey("worker_keys.id")),
    sa.Column("model", sa.Text, comment="of the GPU; none: it gives no score"),
    sa.Column("session", sa.Uuid, nullable=False, comment="of the process that has the GPU now"),
    sa.Column("supervisor", sa.Uuid, nullable=False, comment="the process that started the worker"),
    sa.Column("build", sa.Text, nullable=False, comment="the version of its judge"),
    sa.Column("joined", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    sa.Column("seen", sa.DateTime(timezone=True), comment="none: it has left"),
    sa.Column("draining", sa.Boolean, nullable=False),
    sa.UniqueConstraint("session"),
)

board_version = sa.Table(
    "board_version", metadata, sa.Column("number", sa.BigInteger, nullable=False)
)
"""One row, with a number that triggers of the database increase with every change of the board."""

audit = sa.Table(
    "audit",
    metadata,
    _number(),
    sa.Column("at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    _person("actor", nullable=True),  # none where the arena itself acted
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("details", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")),
)
"""A trigger of the database lets no one change or delete a row of this table."""
