"""Tests of submit.py: it has the exit codes of `grade` and survives lost connections."""

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Connection

from harness.arena.client import main
from harness.arena.store import people, watching
from harness.protocol.report import Report
from tests.arena.submitting import Add, FakeWorker, waiting_jobs
from tests.board import factory

NOWHERE = "http://127.0.0.1:9"
Submits = Callable[..., tuple[int, str]]


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "my tile.cu"
    path.write_text(factory.SOURCE)
    return path


@pytest.fixture
def key(connection: Connection, person: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    made = people.new_key(connection, person("ada").id, "test")
    monkeypatch.setenv("MATMUL_ARENA_KEY", made)


@pytest.fixture
def submits(address: str, key: None, kernel: Path, capsys: pytest.CaptureFixture[str]) -> Submits:
    """A function that submits files and returns the exit code and what is printed."""

    def run(*files: Path, arena: str = address) -> tuple[int, str]:
        chosen = map(str, files or [kernel])
        return main([*chosen, "--arena", arena]), "".join(capsys.readouterr())

    return run


@contextmanager
def working(worker: FakeWorker, report: Report | None = None) -> Iterator[None]:
    """Run a worker that grades every submission. report: of the first; others are accepted."""
    reports = [report]
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.1):
            if worker.do(waiting_jobs):
                worker.grade(report=reports.pop() if reports else None)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("accepted", [True, False])
def test_the_exit_code_says_whether_it_is_accepted(
    accepted: bool, submits: Submits, worker: FakeWorker, kernel: Path
) -> None:
    with working(worker, None if accepted else factory.wrong()):
        code, shown = submits(kernel, kernel)
    assert code == (0 if accepted else 1) and "my tile.cu is submission" in shown
    assert ("my tile.cu: accepted" if accepted else "my tile.cu: wrong-answer") in shown
    reason = factory.wrong().outcome.message
    assert reason and (f"\n  {reason}\n" in shown) != accepted


def test_a_refusal_is_one_sentence_and_exit_code_2(
    submits: Submits,
    rules: Path,
    connection: Connection,
    person: Add,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules.write_text("ends = 2026-01-01T00:00:00Z\n")
    code, said = submits()
    assert code == 2 and "the arena: The contest ended at 2026-01-01 00:00 UTC." in said
    old = people.new_key(connection, person("bob").id, "old", days=-1)
    monkeypatch.setenv("MATMUL_ARENA_KEY", old)
    code, said = submits()
    assert code == 2 and "the arena: This key is not valid" in said


@contextmanager
def losing(address: str, lost: list[str]) -> Iterator[str]:
    """Start a relay between the client and the arena that loses connections, one for each word.

    With "request" the request is lost, with "answer" the answer, with "" nothing. After the last
    word no connection is lost.
    """
    split = urlsplit(address)
    there = (str(split.hostname), int(split.port or 0))

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            how = lost.pop(0) if lost else ""
            asked = self.request.recv(1 << 16)
            if how == "request":
                return
            with socket.create_connection(there) as arena:
                arena.sendall(asked)
                threading.Thread(target=carry, args=(self.request, arena), daemon=True).start()
                if how == "answer":
                    arena.recv(1)
                    return
                carry(arena, self.request)

    def carry(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while part := one.recv(1 << 16):
                other.sendall(part)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay) as relay:
        relay.daemon_threads = True
        thread = threading.Thread(target=relay.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{relay.server_address[1]}"
        finally:
            relay.shutdown()
            thread.join()


@pytest.mark.parametrize("lost", [["request"], ["answer", "answer"], ["", "request", "answer"]])
def test_lost_requests_are_repeated_and_make_one_submission(
    lost: list[str],
    submits: Submits,
    address: str,
    worker: FakeWorker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.arena.client.AGAIN_SECONDS", 0.05)
    with working(worker), losing(address, lost) as relay:
        code, shown = submits(arena=relay)
    assert lost == [], "every loss has happened"
    assert len(worker.do(watching.recent)) == 1, "and it is one submission"
    assert code == 0 and "accepted" in shown


@pytest.mark.parametrize(
    ("arguments", "key", "sentence"),
    [
        (["x.cu", "--arena", NOWHERE], "", "Set MATMUL_ARENA_KEY"),
        (["x.cu", "--arena", NOWHERE], "arena_é", "Set MATMUL_ARENA_KEY"),
        (["none.cu", "--arena", NOWHERE], "arena_x", "none.cu cannot be read: No such file"),
        ([".", "--arena", NOWHERE], "arena_x\n", ". cannot be read: Is a directory."),
        (["x.cu", "--arena", "arena.example.org"], "arena_x", "takes the arena's address"),
        (["x.cu", "--arena", NOWHERE], "arena_x", "does not answer"),
    ],
)
def test_what_cannot_be_submitted_is_said_in_one_sentence(
    arguments: list[str],
    key: str,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("harness.arena.client.PATIENCE_SECONDS", 0.1)
    monkeypatch.setenv("MATMUL_ARENA_KEY", key)
    monkeypatch.chdir(tmp_path)
    Path("x.cu").write_text("x")
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert sentence in shown and "Errno" not in shown


def test_odd_names_and_huge_files_get_the_arenas_answer(
    submits: Submits, worker: FakeWorker, tmp_path: Path
) -> None:
    odd, huge = tmp_path / "odd\udcff.cu", tmp_path / "huge.cu"
    odd.write_text(factory.SOURCE)
    huge.write_bytes(b"x" * (20 << 20))
    code, said = submits(huge)
    assert code == 2 and "the arena: The file is larger than 1 MiB" in said
    with working(worker):
        code, shown = submits(odd)
    assert code == 0 and "odd?.cu: accepted" in shown
