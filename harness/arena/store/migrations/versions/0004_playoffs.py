"""Play-offs; workers elsewhere join as the arena judges; gradings count their device's time."""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "arena_0004"
down_revision = "arena_0003"


def upgrade() -> None:
    quick: sa.Column[bool] = sa.Column(
        "quick", sa.Boolean(), nullable=True, comment="by a sample of the cases"
    )
    op.add_column("edition", quick)
    op.execute("UPDATE edition SET quick = false")  # said anew at each start
    op.alter_column("edition", "quick", nullable=False)
    op.create_table(
        "playoffs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("made_by", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False, comment="of the GPUs that play"),
        sa.Column(
            "created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("result", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True, comment="why there is no result"),
        sa.CheckConstraint(
            "(ended IS NULL) = (result IS NULL AND failure IS NULL)",
            name=op.f("ck_playoffs_ended_somehow"),
        ),
        sa.ForeignKeyConstraint(["made_by"], ["people.id"], name=op.f("fk_playoffs_made_by")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_playoffs")),
    )
    op.create_table(
        "players",
        sa.Column("playoff", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.SmallInteger(), nullable=False, comment="among the players, from 0"),
        sa.Column("submission", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False, comment="sha256 of the program"),
        sa.ForeignKeyConstraint(["playoff"], ["playoffs.id"], name=op.f("fk_players_playoff")),
        sa.ForeignKeyConstraint(
            ["submission"], ["submissions.id"], name=op.f("fk_players_submission")
        ),
        sa.PrimaryKeyConstraint("playoff", "place", name=op.f("pk_players")),
    )
    op.create_table(
        "games",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("playoff", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("job", sa.BigInteger(), nullable=True),
        sa.Column(
            "seen",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="its last sign of life",
        ),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("found", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'playing', 'finished', 'failed', 'died')",
            name=op.f("ck_games_state"),
        ),
        sa.CheckConstraint(
            "(state = 'finished') = (found IS NOT NULL)", name=op.f("ck_games_finished_with_rounds")
        ),
        sa.ForeignKeyConstraint(["playoff"], ["playoffs.id"], name=op.f("fk_games_playoff")),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name=op.f("fk_games_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_games")),
    )
    op.create_index(op.f("ix_games_playoff"), "games", ["playoff"], unique=False)
    connection = op.get_bind().connection.dbapi_connection
    assert connection is not None
    functions = Path(__file__).with_name("0004_functions.sql")
    connection.cursor().execute(functions.read_text(encoding="utf-8"))
