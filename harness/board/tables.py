"""The board's tables: the reports, and what ranking needs of each.

A file of one person and the database of an arena have the same tables.
"""

from types import NoneType
from typing import Any, get_args, get_type_hints

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

from harness.board.entry import INDEXED, Entry

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)


_TYPES = {str: Text, int: BigInteger, bool: Boolean, float: Float}
_FIELDS = get_type_hints(Entry)


def _column(name: str) -> Column[Any]:
    """Return the column of a field of entries."""
    kinds = get_args(_FIELDS[name]) or (_FIELDS[name],)
    (kind,) = (each for each in kinds if each is not NoneType)
    return Column(name, _TYPES[kind], nullable=NoneType in kinds)


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
    *(_column(name) for name in INDEXED if name != "id"),
)
"""The facts of each report that ranking needs: a column per field of `board.entry.INDEXED`."""

signatures = Table(
    "signatures",
    metadata,
    Column("id", Text, ForeignKey("reports.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Signatures of reports, which were checked when they were entered."""

counted = table(
    "counted",
    column("id", Text),
    column("graded_here", Boolean),
    column("submitted", DateTime(timezone=True)),
)
"""A view of the entries that count.

In a file these are all. In an arena's database, entries are missing that were withdrawn or
disqualified, and those that were judged again. `graded_here` marks what the arena's own workers
have graded, and `submitted` says when; everything else was imported.
"""
