"""Fixtures of the leaderboard's tests."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from harness.board.regrade import Grader
from harness.board.sqlite_file import FileStore
from harness.cli import main as cli
from harness.cli.commands import _arguments, regrade
from harness.cli.commands._stores import Address
from harness.cli.views.console import Terminal
from harness.protocol.report import Report, Submission
from tests.board.stores import KINDS, New, Where

Enter = Callable[..., Path]
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a store that a test may create."""
    return tmp_path / "leaderboard.sqlite"


@pytest.fixture
def stored(path: Path) -> Callable[..., Path]:
    """A function that enters reports into a store and returns its path."""

    def enter(*reports: Report) -> Path:
        with FileStore(path, create=True) as store:
            for report in reports:
                store.enter(report)
        return path

    return enter


@pytest.fixture
def new(tmp_path: Path, request: pytest.FixtureRequest) -> New:
    """A function that returns a new address and key file for a store of a given kind."""
    made: list[Where] = []

    def find(kind: str) -> Where:
        name = f"store-{len(made)}"
        address = str(tmp_path / f"{name}.sqlite")
        if kind == "postgresql":
            url = request.getfixturevalue("fresh_database")()
            address = url.set(drivername=kind).render_as_string(hide_password=False)
        made.append(Where(Address(address), tmp_path / f"{name}.key"))
        return made[-1]

    return find


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, new: New) -> Where:
    """The address and key file of a new store, of each kind in turn."""
    return new(request.param)


def no_grading(submission: Submission) -> Report:
    raise AssertionError(f"{submission.name} was graded")


@pytest.fixture
def call(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """A function that runs a command and returns its exit code, its stdout and its stderr."""
    monkeypatch.setenv(_arguments.STORE_VARIABLE, str(path))
    monkeypatch.setenv("COLUMNS", "400")

    def run(*words: str | Path, grade: Grader = no_grading) -> tuple[int, str, str]:
        chosen = cli.parse([str(word) for word in words])
        monkeypatch.setattr(regrade.workers, "open_session", lambda _: nullcontext())
        monkeypatch.setattr(regrade, "grade", lambda submission, _: grade(submission))
        return cli.run(chosen, Terminal()), *capsys.readouterr()

    return run
