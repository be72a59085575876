"""The first arena: its tables, the queue's, and what the database itself holds to."""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from procrastinate.schema import SchemaManager
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = ("arena",)
depends_on = "board_0001"


def upgrade() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column(
            "created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("disabled", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "issuer",
            sa.Text(),
            nullable=True,
            comment="of the OpenID provider that vouches for this person",
        ),
        sa.Column("subject", sa.Text(), nullable=True, comment="who this is at that provider"),
        sa.CheckConstraint("role IN ('contestant', 'organiser')", name=op.f("ck_people_role")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_people_issuer_subject")),
    )
    op.create_index(
        "ix_people_name_unique", "people", [sa.literal_column("lower(name)")], unique=True
    )
    op.create_table(
        "announcements",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("made_by", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column(
            "created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("removed", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["made_by"], ["people.id"], name=op.f("fk_announcements_made_by")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_announcements")),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("actor", sa.BigInteger(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column(
            "details",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["actor"], ["people.id"], name=op.f("fk_audit_actor")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False, comment="sha256 of what the link holds"),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("uses_left", sa.Integer(), nullable=False),
        sa.Column("made_by", sa.BigInteger(), nullable=False),
        sa.Column(
            "created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("role IN ('contestant', 'organiser')", name=op.f("ck_invitations_role")),
        sa.CheckConstraint("uses_left >= 0", name=op.f("ck_invitations_uses_left")),
        sa.ForeignKeyConstraint(["made_by"], ["people.id"], name=op.f("fk_invitations_made_by")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("hash", name=op.f("uq_invitations_hash")),
    )
    op.create_table(
        "keys",
        sa.Column(
            "hash", sa.Text(), nullable=False, comment="sha256 of a key: the key itself is not kept"
        ),
        sa.Column("person", sa.BigInteger(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column(
            "created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_keys_person")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_keys")),
    )
    op.create_index(op.f("ix_keys_person"), "keys", ["person"], unique=False)
    op.create_table(
        "rejudges",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("made_by", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column(
            "created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("applied", sa.DateTime(timezone=True), nullable=True),
        sa.Column("dropped", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["made_by"], ["people.id"], name=op.f("fk_rejudges_made_by")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rejudges")),
    )
    op.create_table(
        "sessions",
        sa.Column("hash", sa.Text(), nullable=False, comment="sha256 of what the cookie holds"),
        sa.Column("person", sa.BigInteger(), nullable=False),
        sa.Column(
            "created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_sessions_person")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_person"), "sessions", ["person"], unique=False)
    op.create_table(
        "submissions",
        sa.Column("id", sa.Text(), nullable=False, comment="random: not to be guessed or counted"),
        sa.Column("person", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column(
            "received", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column(
            "counts",
            sa.BigInteger(),
            nullable=True,
            comment="the grading whose report is the result",
        ),
        sa.Column("withdrawn", sa.DateTime(timezone=True), nullable=True),
        sa.Column("disqualified", sa.Text(), nullable=True, comment="why"),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_submissions_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint(
            "person", "idempotency_key", name=op.f("uq_submissions_person_idempotency_key")
        ),
    )
    op.create_index(
        op.f("ix_submissions_person_received"), "submissions", ["person", "received"], unique=False
    )
    op.create_index(op.f("ix_submissions_received"), "submissions", ["received"], unique=False)
    op.create_table(
        "gradings",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("submission", sa.Text(), nullable=False),
        sa.Column("rejudge", sa.BigInteger(), nullable=True),
        sa.Column("person", sa.BigInteger(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column(
            "job", sa.BigInteger(), nullable=True, comment="the queue's job that may take it up"
        ),
        sa.Column("attempt", sa.Uuid(), nullable=True, comment="the attempt that holds it"),
        sa.Column("attempts", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column(
            "queued", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "seen",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="the attempt's last sign of life",
        ),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "progress", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("report", sa.Text(), nullable=True),
        sa.Column(
            "seconds",
            sa.Float(),
            nullable=True,
            comment="that a worker spent on it, dead attempts included",
        ),
        sa.CheckConstraint(
            "(state = 'done') = (report IS NOT NULL)", name=op.f("ck_gradings_done_with_a_report")
        ),
        sa.CheckConstraint(
            "(state = 'grading') = (attempt IS NOT NULL)",
            name=op.f("ck_gradings_held_by_an_attempt"),
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'grading', 'done', 'cancelled')", name=op.f("ck_gradings_state")
        ),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_gradings_person")),
        sa.ForeignKeyConstraint(["rejudge"], ["rejudges.id"], name=op.f("fk_gradings_rejudge")),
        sa.ForeignKeyConstraint(["report"], ["reports.id"], name=op.f("fk_gradings_report")),
        sa.ForeignKeyConstraint(
            ["submission"], ["submissions.id"], name=op.f("fk_gradings_submission")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gradings")),
    )
    op.create_index("ix_gradings_ended", "gradings", ["ended"], unique=False)
    op.create_index(
        "ix_gradings_held",
        "gradings",
        ["id"],
        unique=False,
        postgresql_where=sa.text("state = 'grading'"),
    )
    op.create_index(op.f("ix_gradings_job"), "gradings", ["job"], unique=False)
    op.create_index(op.f("ix_gradings_person_turn"), "gradings", ["person", "turn"], unique=False)
    op.create_index(op.f("ix_gradings_rejudge"), "gradings", ["rejudge"], unique=False)
    op.create_index(
        "ix_gradings_started_turn",
        "gradings",
        ["turn"],
        unique=False,
        postgresql_where=sa.text("started IS NOT NULL"),
    )
    op.create_index(op.f("ix_gradings_submission"), "gradings", ["submission"], unique=False)
    op.create_index(
        "ix_gradings_waiting",
        "gradings",
        ["turn", "id"],
        unique=False,
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("grading", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.SmallInteger(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column(
            "started", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fate", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "fate IN ('finished', 'died', 'given back', 'cancelled')", name=op.f("ck_attempts_fate")
        ),
        sa.ForeignKeyConstraint(["grading"], ["gradings.id"], name=op.f("fk_attempts_grading")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("grading", "number", name=op.f("uq_attempts_grading_number")),
    )
    # The queue's own tables, of the version that pyproject.toml pins.
    _run(SchemaManager.get_schema())
    _run(Path(__file__).with_name("0001_functions.sql").read_text(encoding="utf-8"))


def _run(script: str) -> None:
    """Several statements, with per cent signs and colons as they stand."""
    connection = op.get_bind().connection.dbapi_connection
    assert connection is not None
    connection.cursor().execute(script)
