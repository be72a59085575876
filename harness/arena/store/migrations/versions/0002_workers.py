"""Machines that bring workers, the workers, and their check-ups: who may grade, and on what."""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "arena_0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "edition",
        sa.Column("one", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("judge", sa.Text(), nullable=False),
        sa.Column("cases", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False, comment="sha256 of the judge's files"),
        sa.CheckConstraint("one", name=op.f("ck_edition_one_row")),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_edition")),
    )
    op.create_table(
        "machines",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("login", sa.Text(), nullable=False, comment="its role in the database"),
        sa.Column(
            "created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("revoked", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_machines")),
        sa.UniqueConstraint("login", name=op.f("uq_machines_login")),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False, comment="the GPU's UUID; for a CPU a name"),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("machine", sa.BigInteger(), nullable=True, comment="none: the arena's own"),
        sa.Column("model", sa.Text(), nullable=True, comment="of the GPU; none: it gives no score"),
        sa.Column("session", sa.Uuid(), nullable=False, comment="who holds the GPU now"),
        sa.Column("crew", sa.Uuid(), nullable=False, comment="the supervisor that started it"),
        sa.Column(
            "joined", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=True, comment="none: it has left"),
        sa.Column("clock_ahead", sa.Float(), nullable=False, comment="seconds, of its machine's"),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.Column("organiser_says", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "organiser_says IN ('in service', 'set aside')", name=op.f("ck_workers_organiser_says")
        ),
        sa.ForeignKeyConstraint(["machine"], ["machines.id"], name=op.f("fk_workers_machine")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
        sa.UniqueConstraint("session", name=op.f("uq_workers_session")),
    )
    op.create_table(
        "checkups",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column(
            "found", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False
        ),
        sa.Column("judged", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fault", sa.Text(), nullable=True, comment="why the GPU is set aside"),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name=op.f("fk_checkups_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkups")),
    )
    op.create_index(op.f("ix_checkups_worker_at"), "checkups", ["worker", "at"], unique=False)
    op.add_column("gradings", sa.Column("model", sa.Text(), comment="of GPU; none: any worker"))
    op.add_column("attempts", sa.Column("worker_id", sa.Text()))
    op.create_foreign_key(
        op.f("fk_attempts_worker_id"), "attempts", "workers", ["worker_id"], ["id"]
    )
    op.create_index(
        "ix_attempts_open",
        "attempts",
        ["worker_id"],
        unique=False,
        postgresql_where=sa.text("ended IS NULL"),
    )
    connection = op.get_bind().connection.dbapi_connection
    assert connection is not None
    functions = Path(__file__).with_name("0002_functions.sql")
    connection.cursor().execute(functions.read_text(encoding="utf-8"))
