"""Enter a report once.

The graders of test_store_under_kill.py are forked from a process that has done so, so that none of
them is killed while it imports libraries.
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path

from harness.board.store import Store
from tests.board import factory

for name in ("psycopg", "sqlalchemy.dialects.postgresql", "harness.arena.as_store"):
    import_module(name)  # for those whose store is PostgreSQL
with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "one.sqlite"), "create") as store:
    store.enter(factory.report())
