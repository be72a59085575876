"""The board's tables: the reports, and what ranking needs of each.

A file of one person and the database of an arena have the same tables.
"""

from types import NoneType
from typing import Any, get_args, get_type_hints

import sqlalchemy as sa

from harness.board.entry import INDEXED, Entry

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = sa.MetaData(naming_convention=NAMING)


_TYPES = {str: sa.Text, int: sa.BigInteger, bool: sa.Boolean, float: sa.Float}
_FIELDS = get_type_hints(Entry)


def _column(name: str) -> sa.Column[Any]:
    """Return the column of a field of entries."""
    kinds = get_args(_FIELDS[name]) or (_FIELDS[name],)
    (kind,) = (each for each in kinds if each is not NoneType)
    return sa.Column(name, _TYPES[kind], nullable=NoneType in kinds)


reports = sa.Table(
    "reports",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("report", sa.Text, nullable=False),
)
"""The reports themselves, apart from their index so that ranking never reads them."""

entries = sa.Table(
    "entries",
    metadata,
    sa.Column("id", sa.Text, sa.ForeignKey("reports.id"), primary_key=True),
    *(_column(name) for name in INDEXED if name != "id"),
)
"""The facts of each report that ranking needs: a column per field of `board.entry.INDEXED`."""

signatures = sa.Table(
    "signatures",
    metadata,
    sa.Column("id", sa.Text, sa.ForeignKey("reports.id"), primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""Signatures of reports, which were checked when they were entered."""

counted = sa.table(
    "counted",
    sa.column("id", sa.Text),
    sa.column("graded_here", sa.Boolean),
    sa.column("submitted", sa.DateTime(timezone=True)),
)
"""A view of the entries that count.

In a file these are all. In an arena's database, entries are missing that were withdrawn or
disqualified, and those that were judged again. `graded_here` marks what the arena's own workers
have graded, and `submitted` says when; everything else was imported.
"""
