"""A store's file: what keeps it from being used is said, and waiting has an end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from harness.board import schema, sqlite_file
from harness.board.errors import StoreError
from harness.board.sqlite_file import BUSY_SECONDS, Mode, SqliteFile, _use_write_ahead_log

Open = Callable[..., SqliteFile]


@pytest.fixture
def open_file(tmp_path: Path) -> Iterator[Open]:
    opened: list[SqliteFile] = []

    def make(mode: Mode = "create") -> SqliteFile:
        opened.append(SqliteFile(tmp_path / "a?b.sqlite", mode))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def test_a_file_is_made_where_its_name_says(open_file: Open, tmp_path: Path) -> None:
    made = open_file()
    assert made.name == str(tmp_path / "a?b.sqlite") and made.path.is_file()
    assert made.key == tmp_path / "a?b.key"
    with made.reading() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1
        assert connection.scalar(text("PRAGMA busy_timeout")) == 1000 * BUSY_SECONDS
    made.check()


def test_who_looks_while_another_makes_it_sees_a_leaderboard(
    open_file: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks twice, at what is in the file and at whose it is; the other comes between."""
    looked: list[str] = []

    class Answer:
        def __init__(self, row: Any) -> None:
            self._row = row

        def fetchone(self) -> Any:
            return self._row

    class Late(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> Any:
            if sql.startswith(("SELECT count(*) FROM sqlite_master", "PRAGMA application_id")):
                row = super().execute(sql, *rest).fetchone()
                looked.append(sql)
                if len(looked) == 1:
                    monkeypatch.undo()
                    open_file()
                return Answer(row)
            return super().execute(sql, *rest)

    connect = sqlite3.connect

    def connect_late(*args: Any, **options: Any) -> Any:
        return connect(*args, factory=Late, **options)

    monkeypatch.setattr(sqlite3, "connect", connect_late)
    open_file().check()
    assert len(looked) == 2


def test_who_writes_does_so_alone_from_the_beginning(
    open_file: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.01)
    one, other = open_file(), open_file("update")
    locked = "stayed locked by another program for 0 s; nothing was changed. Try again."
    with one.writing():
        with pytest.raises(StoreError) as error, other.writing():
            pass
        assert str(error.value) == f"{one.path} {locked}"
        with other.reading() as connection:  # who reads waits for nobody
            connection.scalar(text("PRAGMA user_version"))
    with one.reading(), other.writing():
        pass


def test_what_is_only_read_is_left_as_it_is(open_file: Open) -> None:
    made = open_file()
    made.close()
    with closing(sqlite3.connect(made.path)) as plain:
        plain.execute("PRAGMA journal_mode = DELETE")
    reading = open_file("read")
    with reading.reading() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "delete"
    refused = pytest.raises(StoreError, match="cannot be used: attempt to write a readonly")
    with refused, reading.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE x (y)")


def test_what_the_file_says_of_itself_is_passed_on(
    open_file: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = open_file()

    class Damaged:
        def scalar(self, query: Any) -> str:
            assert str(query) == "PRAGMA integrity_check(1)"
            return "row 3 is missing"

    @contextmanager
    def reading() -> Iterator[Any]:
        yield Damaged()

    monkeypatch.setattr(made, "reading", reading)
    with pytest.raises(StoreError) as error:
        made.check()
    assert str(error.value) == made.damaged("row 3 is missing")
    assert "(row 3 is missing); it was left as it is." in str(error.value)


def failing(code: int | None) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("so it was")
    if code is not None:
        error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_CORRUPT, "is damaged or is no leaderboard (so it was)"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "is damaged or is no leaderboard (so it was)"),
        (sqlite3.SQLITE_BUSY_RECOVERY, "stayed locked by another program"),
        (sqlite3.SQLITE_FULL, "cannot be used: so it was."),
        (None, "cannot be used: so it was."),
    ],
)
def test_each_failure_is_a_sentence(open_file: Open, code: int | None, said: str) -> None:
    made = open_file()
    with pytest.raises(StoreError) as error, made.reading():
        raise failing(code)
    assert str(error.value).startswith(f"{made.path} {said}")


def test_what_no_table_is_of_fails_with_its_own_words(open_file: Open) -> None:
    made = open_file()
    with pytest.raises(StoreError) as error, made.reading() as connection:
        connection.scalar(text("SELECT x FROM nowhere"))
    assert str(error.value) == f"{made.path} cannot be used: no such table: nowhere."


class Clock:
    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += 0.5


class Busy:
    """A connection that says so many times that another has the file."""

    def __init__(self, times: int, code: int = sqlite3.SQLITE_BUSY) -> None:
        self.times, self.code, self.asked = times, code, 0

    def execute(self, statement: str) -> Busy:
        assert statement == "PRAGMA journal_mode = WAL"
        self.asked += 1
        if self.asked <= self.times:
            raise failing(self.code)
        return self

    def fetchone(self) -> None:
        pass


def test_two_that_make_a_file_at_once_wait_for_one_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(sqlite_file, "time", clock)
    most = int(2 * BUSY_SECONDS) + 1
    for times, code in ((0, 5), (3, 5), (3, 6), (3, sqlite3.SQLITE_BUSY_RECOVERY), (most, 5)):
        clock.__init__()  # type: ignore[misc]
        connection: Any = Busy(times, code)
        _use_write_ahead_log(connection)
        assert connection.asked == times + 1 and clock.slept == [0.01] * times
    for times, code, asked in ((most + 1, 5, most + 1), (1, sqlite3.SQLITE_FULL, 1)):
        clock.__init__()  # type: ignore[misc]
        connection = Busy(times, code)
        with pytest.raises(sqlite3.OperationalError):
            _use_write_ahead_log(connection)
        assert connection.asked == asked


def test_a_file_is_opened_by_its_address_and_begins_nothing_by_itself(
    open_file: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    connect = sqlite3.connect

    def noted(address: str, **how: Any) -> sqlite3.Connection:
        asked.append((address, how))
        return connect(address, **how)

    monkeypatch.setattr(sqlite3, "connect", noted)
    path = open_file().path
    how = {"uri": True, "timeout": BUSY_SECONDS, "isolation_level": None}
    assert asked == [(f"file:{str(path).replace('?', '%3F')}?mode=rwc", how)]


def test_an_old_file_that_is_only_read_is_copied_to_nowhere_that_stays(
    open_file: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, here = tmp_path / "a?b.sqlite", tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with closing(sqlite3.connect(path)) as plain:
        plain.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    before = path.read_bytes()
    reading = open_file("read")
    with reading.reading() as connection:
        assert schema.applied(connection) == {schema.HEAD}
    reading.close()
    assert path.read_bytes() == before and [*here.iterdir()] == []
