"""The board's tables: the reports, and what ranking needs of each.

A file of one person and the database of an arena have the same tables.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    MetaData,
    Table,
    Text,
    column,
    table,
)

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)


reports = Table(
    "reports",
    metadata,
    Column("id", Text, primary_key=True),
    Column("report", Text, nullable=False),
)
"""The reports themselves, apart from their index so that ranking never reads them."""

entries = Table(
    "entries",
    metadata,
    Column("id", Text, ForeignKey("reports.id"), primary_key=True),
    Column("created", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("stage", Text),
    Column("quick", Boolean, nullable=False),
    Column("judge", Text, nullable=False),
    Column("cases", BigInteger, nullable=False),
    Column("seed", Text, nullable=False),
    Column("device", Text),
    Column("on_gpu", Boolean, nullable=False),
    Column("driver", Text),
    Column("cuda", Text),
    Column("cublas", Text),
    Column("clock_mhz", BigInteger),
    Column("score", Float),
    Column("low", Float),
    Column("high", Float),
    Column("kernel_ms", Float),
    Column("baseline_ms", Float),
    Column("tflops", Float),
    Column("peak_share", Float),
    Column("cores", Text),
    Column("launch", Text),
    Column("registers", BigInteger),
    Column("uuid", Text),
    Column("accuracy", Text),
)
"""What ranking needs of each report, column for column `harness.board.entry.INDEXED`."""

signatures = Table(
    "signatures",
    metadata,
    Column("id", Text, ForeignKey("reports.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Signatures of reports, which were checked when they were entered."""

refused = Table(
    "refused",
    metadata,
    Column("report", Text, nullable=False),
    Column("reason", Text, nullable=False),
)
"""Reports that earlier versions set aside; this version neither reads nor changes them."""

counted = table(
    "standing",
    column("id", Text),
    column("graded_here", Boolean),
    column("handed_in", DateTime(timezone=True)),
)
"""A view of the entries that count.

In a file these are all. In an arena's database, entries are missing that were withdrawn or
disqualified, and those that were judged again. `graded_here` marks what the arena's own workers
have graded, and `handed_in` says when it was submitted; everything else was imported.
"""
