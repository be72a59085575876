"""The arena's tables.

A submission is a file from one person. Each time that it is graded is a grading; each time that a
worker begins a grading is an attempt. The reports and their index are the board's
(harness/board/tables.py).
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from harness.board.tables import NAMING, reports

metadata = MetaData(naming_convention=NAMING)


def _now() -> Column[object]:
    return Column("created", DateTime(timezone=True), nullable=False, server_default=func.now())


def _number() -> Column[int]:
    return Column("id", BigInteger, Identity(always=True), primary_key=True)


def _person(name: str = "person", *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, ForeignKey("people.id"), nullable=nullable)


people = Table(
    "people",
    metadata,
    _number(),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    _now(),
    Column("disabled", DateTime(timezone=True)),
    Column("issuer", Text, comment="of the OpenID provider that vouches for this person"),
    Column("subject", Text, comment="who this is at that provider"),
    Column("login", Text, comment="in the course's roster: an e-mail address, say"),
    Column("section", Text, comment="the group of the course"),
    Column("pseudonym", Text, comment="the name on the boards, where the rules want one"),
    Column("extended", DateTime(timezone=True), comment="a deadline of this person's own"),
    CheckConstraint("role IN ('contestant', 'organiser')", name="role"),
    UniqueConstraint("issuer", "subject"),
    Index("ix_people_name_unique", func.lower(text("name")), unique=True),
    Index("ix_people_pseudonym_unique", "pseudonym", unique=True),
)

keys = Table(
    "keys",
    metadata,
    Column("hash", Text, primary_key=True, comment="sha256 of a key: the key itself is not kept"),
    _person(),
    Column("label", Text, nullable=False),
    _now(),
    Column("expires", DateTime(timezone=True)),
    Column("revoked", DateTime(timezone=True)),
    Index(None, "person"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("hash", Text, primary_key=True, comment="sha256 of what the cookie holds"),
    _person(),
    Column("key", Text, ForeignKey("keys.hash"), comment="by which the person signed in"),
    _now(),
    Column("expires", DateTime(timezone=True), nullable=False),
    Index(None, "person"),
)

invitations = Table(
    "invitations",
    metadata,
    _number(),
    Column("hash", Text, nullable=False, unique=True, comment="sha256 of what the link holds"),
    Column("role", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("name", Text, comment="of the one person whom the roster names"),
    Column("login", Text),
    Column("section", Text),
    Column("uses_left", Integer, nullable=False),
    _person("made_by"),
    _now(),
    Column("expires", DateTime(timezone=True), nullable=False),
    CheckConstraint("uses_left >= 0", name="uses_left"),
    CheckConstraint("role IN ('contestant', 'organiser')", name="role"),
)

submissions = Table(
    "submissions",
    metadata,
    Column("id", Text, primary_key=True, comment="random: not to be guessed or counted"),
    _person(),
    Column("name", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("received", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("idempotency_key", Text),
    Column("counts", BigInteger, comment="the grading whose report is the result"),
    Column("withdrawn", DateTime(timezone=True)),
    Column("disqualified", Text, comment="why"),
    UniqueConstraint("person", "idempotency_key"),
    Index(None, "person", "received"),
    Index(None, "received"),
)

rejudges = Table(
    "rejudges",
    metadata,
    _number(),
    _person("made_by"),
    Column("reason", Text, nullable=False),
    _now(),
    Column("applied", DateTime(timezone=True)),
    Column("dropped", DateTime(timezone=True)),
)

gradings = Table(
    "gradings",
    metadata,
    _number(),
    Column("submission", Text, ForeignKey("submissions.id"), nullable=False),
    Column("rejudge", BigInteger, ForeignKey("rejudges.id")),
    _person(),  # the person whose place in the queue it uses: an organiser if it is a regrading
    Column("turn", Integer, nullable=False),
    Column("model", Text, comment="of GPU; none: any worker"),
    Column("state", Text, nullable=False, server_default="queued"),
    Column("attempt", Uuid, comment="the attempt that holds it"),
    Column("attempts", SmallInteger, nullable=False, server_default="0"),
    Column("queued", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("started", DateTime(timezone=True)),
    Column("seen", DateTime(timezone=True), comment="the attempt's last sign of life"),
    Column("ended", DateTime(timezone=True)),
    Column("progress", JSONB(none_as_null=True)),
    Column("verdict", Text),
    Column("report", Text, ForeignKey(reports.c.id)),
    Column("seconds", Float, comment="that a worker spent on it, dead attempts included"),
    CheckConstraint("state IN ('queued', 'grading', 'done', 'cancelled')", name="state"),
    CheckConstraint("(state = 'grading') = (attempt IS NOT NULL)", name="held_by_an_attempt"),
    CheckConstraint("(state = 'done') = (report IS NOT NULL)", name="done_with_a_report"),
    Index(None, "submission"),
    Index(None, "rejudge"),
    Index(None, "person", "turn"),
    Index("ix_gradings_waiting", "turn", "id", postgresql_where=text("state = 'queued'")),
    Index("ix_gradings_held", "id", postgresql_where=text("state = 'grading'")),
    Index("ix_gradings_started_turn", "turn", postgresql_where=text("started IS NOT NULL")),
    Index("ix_gradings_ended", "ended"),
    Index("ix_gradings_report", "report", postgresql_ops={"report": "text_pattern_ops"}),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("grading", BigInteger, ForeignKey("gradings.id"), nullable=False),
    Column("number", SmallInteger, nullable=False),
    Column("worker", Text, nullable=False),
    Column("worker_id", Text, ForeignKey("workers.id")),
    Column("quick", Boolean, nullable=False, server_default=text("false")),
    Column("started", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("ended", DateTime(timezone=True)),
    Column("fate", Text),
    CheckConstraint("fate IN ('finished', 'died', 'given back', 'cancelled')", name="fate"),
    UniqueConstraint("grading", "number"),
    Index("ix_attempts_open", "worker_id", postgresql_where=text("ended IS NULL")),
)

worker_keys = Table(
    "worker_keys",
    metadata,
    _number(),
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True, comment="sha256 of the worker key"),
    Column("own", Boolean, nullable=False, server_default=text("false")),
    _now(),
    Column("revoked", DateTime(timezone=True)),
)
"""The machines whose workers may grade. The arena's own workers have one of these keys, too."""

workers = Table(
    "workers",
    metadata,
    Column("id", Text, primary_key=True, comment="the GPU's UUID; for a CPU a name"),
    Column("name", Text, nullable=False),
    Column("machine", BigInteger, ForeignKey("worker_keys.id")),
    Column("model", Text, comment="of the GPU; none: it gives no score"),
    Column("session", Uuid, nullable=False, comment="of the process that has the GPU now"),
    Column("supervisor", Uuid, nullable=False, comment="the process that started the worker"),
    Column("build", Text, nullable=False, comment="the version of its judge"),
    Column("joined", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("seen", DateTime(timezone=True), comment="none: it has left"),
    Column("draining", Boolean, nullable=False),
    UniqueConstraint("session"),
)

board_version = Table("board_version", metadata, Column("number", BigInteger, nullable=False))
"""One row, with a number that triggers of the database increase with every change of the board."""

audit = Table(
    "audit",
    metadata,
    _number(),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    _person("actor", nullable=True),  # none where the arena itself acted
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("details", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
)
"""A trigger of the database lets no one change or delete a row of this table."""
