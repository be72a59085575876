"""Reports, and what ranking needs of each: in SQLite what was version 1 of the file, and in
PostgreSQL what the first arena had."""

import sqlalchemy as sa
from alembic import op

revision = "board_0001"
down_revision = None
branch_labels = ("board",)

Flag = sa.Boolean().with_variant(sa.Integer(), "sqlite")
Number = sa.Float().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("PRAGMA application_id = 0x6D6D6172")
    op.create_table(
        "reports",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reports")),
        sqlite_strict=True,
    )
    op.create_table(
        "entries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=True),
        sa.Column("quick", Flag, nullable=False),
        sa.Column("judge", sa.Text(), nullable=False),
        sa.Column("cases", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=True),
        sa.Column("on_gpu", Flag, nullable=False),
        sa.Column("driver", sa.Text(), nullable=True),
        sa.Column("cuda", sa.Text(), nullable=True),
        sa.Column("cublas", sa.Text(), nullable=True),
        sa.Column("clock_mhz", sa.Integer(), nullable=True),
        sa.Column("score", Number, nullable=True),
        sa.Column("low", Number, nullable=True),
        sa.Column("high", Number, nullable=True),
        sa.Column("kernel_ms", Number, nullable=True),
        sa.Column("baseline_ms", Number, nullable=True),
        sa.Column("tflops", Number, nullable=True),
        sa.Column("peak_share", Number, nullable=True),
        sa.Column("cores", sa.Text(), nullable=True),
        sa.Column("launch", sa.Text(), nullable=True),
        sa.Column("registers", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["id"], ["reports.id"], name=op.f("fk_entries_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entries")),
        sqlite_strict=True,
    )
