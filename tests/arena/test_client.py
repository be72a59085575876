"""`submit --arena`: from a terminal, with the exit codes of `grade`, and patient."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection

from harness.arena.store import gradings, people
from harness.arena.store.people import Person
from harness.cli import main
from harness.leaderboard.document import Document
from tests.arena.handing_in import graded, joined, take
from tests.leaderboard import factory

Add = Callable[..., Person]


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "my tile.cu"
    path.write_text(factory.SOURCE)
    return path


@pytest.fixture
def key(connection: Connection, person: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    made = people.new_key(connection, person("ada").id, "test")
    monkeypatch.setenv("MATMUL_ARENA_KEY", made)


@contextmanager
def working(
    connection: Connection, url: URL, report: Callable[..., Document] = graded
) -> Iterator[None]:
    """A worker that grades whatever comes next."""
    over = threading.Event()

    def work() -> None:
        attempts = joined(url)
        while not over.wait(0.1):
            if gradings.counts_by_state(connection).get("queued"):  # type: ignore[call-overload]
                attempt = take(connection, attempts)
                attempts.finish(attempt.attempt, report(attempt))
        attempts.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_an_accepted_file_ends_with_0(
    address: str,
    key: None,
    kernel: Path,
    connection: Connection,
    worker_url: URL,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with working(connection, worker_url):
        assert main(["submit", str(kernel), "--arena", address]) == 0
    shown = capsys.readouterr()
    assert "accepted" in shown.out and "my tile.cu is submission" in shown.err


def test_a_rejected_file_ends_with_1(
    address: str, key: None, kernel: Path, connection: Connection, worker_url: URL
) -> None:
    def wrong(attempt: object) -> Document:
        return Document.of(factory.wrong())

    with working(connection, worker_url, wrong):
        assert main(["submit", str(kernel), "--arena", address]) == 1


def test_what_the_arena_refuses_is_its_sentence_and_2(
    address: str, key: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.cu"
    empty.write_text("")
    assert main(["submit", str(empty), "--arena", address]) == 2
    assert "the arena: The file is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "key_there", "sentence"),
    [
        (["x.cu", "--arena", "http://127.0.0.1:9"], False, "set MATMUL_ARENA_KEY"),
        (["none.cu", "--arena", "http://127.0.0.1:9"], True, "there is no file"),
        (["x.cu", "--arena", "arena.example.org"], True, "takes the arena's address"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    arguments: list[str],
    key_there: bool,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MATMUL_ARENA_KEY", "arena_x" if key_there else "")
    monkeypatch.chdir(tmp_path)
    Path("x.cu").write_text("x")
    assert main(["submit", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_nobody_there_is_said_after_a_while(
    key: None, kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.arena.client.PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("harness.arena.client.AGAIN_SECONDS", 0.05)
    assert main(["submit", str(kernel), "--arena", "http://127.0.0.1:9"]) == 2
    assert "does not answer" in capsys.readouterr().err
