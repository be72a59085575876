"""Benchmarks of the leaderboard with 10 000 entries. Run: pytest tests/board/bench_*.py"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.board.entry import INDEXED
from harness.board.ranking import Board, rank
from harness.board.site import Site
from harness.board.store import Store
from tests.board import browser
from tests.board.factory import crowd, report

ENTRIES = 10_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 10 000 scored entries, each of another kernel, so that none share a row."""
    path = tmp_path_factory.mktemp("bench") / "leaderboard.sqlite"
    Store(path, "create").close()
    connection = sqlite3.connect(path)
    values = ", ".join(f":{name}" for name in INDEXED)
    connection.executemany(
        f"INSERT INTO entries ({', '.join(INDEXED)}) VALUES ({values})",
        [entry._asdict() for entry in crowd(ENTRIES)],
    )
    connection.commit()
    connection.close()
    return path


def test_rank_10_000_entries_from_disk(benchmark: BenchmarkFixture, path: Path) -> None:
    def ranking() -> tuple[Board, ...]:
        with Store(path) as store:
            return rank(store.entries())

    (board,) = benchmark(ranking)
    assert len(board.rows) == ENTRIES


def test_write_a_board_of_10_000_kernels(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    entries = crowd(ENTRIES)

    def write() -> None:
        Site(tmp_path / "site", entries).write_boards()

    benchmark.pedantic(write, rounds=3)  # type: ignore[no-untyped-call]


def test_write_100_submissions(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    with Store(tmp_path / "leaderboard.sqlite", "create") as store:
        for number in range(100):
            store.enter(report(f"kernel {number}", rounds=40))

        def write(folder: Path) -> int:
            site = Site(folder, store.entries())
            site.write_boards()
            return sum(1 for _ in site.write_entries(store.document))

        fresh = iter(tmp_path / f"site {number}" for number in range(100))

        def setup() -> tuple[tuple[Path], dict[str, object]]:
            return (next(fresh),), {}

        written = benchmark.pedantic(write, setup=setup, rounds=3)  # type: ignore[no-untyped-call]
        assert written == 100


@pytest.mark.skipif(bool(browser.MISSING), reason=browser.MISSING)
def test_sort_10_000_rows_in_the_browser(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Measure the time from clicks on a heading of text and one of numbers to the next frame."""
    Site(tmp_path / "site", crowd(ENTRIES)).write_boards()
    with browser.chromium(tmp_path / "profile") as chrome:
        chrome.set_script_timeout(60)
        chrome.get((tmp_path / "site" / "index.html").as_uri())

        def sort() -> None:
            chrome.execute_async_script(
                "const done = arguments[arguments.length - 1];"
                "document.querySelector('#ranking th.kernel button').click();"
                "document.querySelector('#ranking th.score button').click();"
                "requestAnimationFrame(() => setTimeout(done));"
            )

        benchmark.pedantic(sort, rounds=10, warmup_rounds=1)  # type: ignore[no-untyped-call]
