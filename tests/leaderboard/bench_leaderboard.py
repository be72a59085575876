"""How long the leaderboard takes with 10 000 entries. Run: pytest tests/leaderboard/bench_*.py"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.leaderboard import schema
from harness.leaderboard.ranking import Board, Edition, rank
from harness.leaderboard.store import Store
from tests.leaderboard.factory import crowd

ENTRIES = 10_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose index has 10 000 scored entries, each a kernel of its own: the most rows."""
    path = tmp_path_factory.mktemp("bench") / "leaderboard.sqlite"
    Store(path, "create").close()
    connection = sqlite3.connect(path)
    connection.executemany(schema.INSERT_ENTRY, crowd(ENTRIES))
    connection.commit()
    connection.close()
    return path


def test_rank_10_000_entries_from_disk(benchmark: BenchmarkFixture, path: Path) -> None:
    def ranking() -> tuple[Board, ...]:
        with Store(path) as store:
            return rank(store.entries(), Edition.current())

    (board,) = benchmark(ranking)
    assert len(board.rows) == ENTRIES
