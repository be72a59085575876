"""The command `worker`, by which another machine grades for an arena."""

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Connection, Engine, text

from harness.arena.build import Build
from harness.arena.processes import End
from harness.arena.store import workers
from harness.arena.supervisor import Part
from harness.cli.commands import worker as command
from harness.cli.main import main
from tests.arena.submitting import FakeWorker, asking


@pytest.fixture
def arguments(address: str, connection: Connection, tmp_path: Path) -> list[str]:
    """The command with the address of an arena, and with a key that the arena knows."""
    (tmp_path / "lab.key").write_text(workers.new_machine(connection, "lab") + "\n")
    return ["worker", "--arena", address, "--key", str(tmp_path / "lab.key"), "--device", "cpu"]


class Once(Part):
    def start(self) -> None:
        assert not self.started, "it is not started again"
        super().start()


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [(End.DRAINED, 0, "have left the arena"), (End.REFUSED, 2, "refused workers of this machine")],
)
def test_it_ends_when_its_workers_may_not_work_any_more(
    end: End,
    code: int,
    said: str,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    part = Once("cpu-0", "timeit", ["-n", "1", f"import os; os._exit({end})"], {})
    monkeypatch.setattr(command, "workers", lambda *_: [part])
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    assert main(arguments) == code
    assert said in capsys.readouterr().err


def test_draining_waits_for_the_workers_of_this_machine(
    arguments: list[str], engine: Engine, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--drain"]) == 0
    assert "no worker of this machine" in capsys.readouterr().err
    (machine,) = workers.machines(connection)
    ours = FakeWorker(engine, asking("ours"), machine["id"])
    FakeWorker(engine, asking("elsewhere"))
    threading.Timer(0.5, ours.leave).start()
    assert main([*arguments, "--drain"]) == 0
    assert "current tasks: 1.\nThey have left." in capsys.readouterr().err
    assert connection.scalar(text("SELECT count(*) FROM workers WHERE seen IS NOT NULL")) == 1


def test_another_version_of_the_judge_is_refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(Build.here(), judge="0.0.9")
    monkeypatch.setattr(command, "Build", SimpleNamespace(here=lambda: other))
    monkeypatch.setattr(command, "Supervisor", None)  # nothing is started
    assert main(arguments) == 2
    assert "this machine with judge 0.0.9" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "said"),
    [([], "set MATMUL_WORKER_KEY"), (["--key", __file__], "is not the file of a worker key")],
)
def test_a_missing_or_wrong_key_is_named(
    file: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("MATMUL_WORKER_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["worker", "--arena", "http://127.0.0.1:9", *file]) == 2
    assert said in capsys.readouterr().err
