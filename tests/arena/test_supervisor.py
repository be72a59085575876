"""Tests of the supervisor: which parts it starts, which secrets each gets, and restarts."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import URL

from harness.arena import supervisor
from harness.arena.arena import parts
from harness.arena.processes import Settings
from harness.arena.supervisor import Part, Supervisor
from tests.waiting import PATIENCE, eventually

OWNER = URL.create("postgresql+psycopg", "owner", "of the owner", "db.example", database="contest")
SECRETS = "of the owner", "of worker"


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with three GPUs."""
    monkeypatch.setattr(supervisor, "why_no_cuda", lambda: None)
    monkeypatch.setattr(supervisor, "gpus", lambda: ["GPU-a", "GPU-b", "GPU-c"])


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "why_no_cuda", lambda: "there is no driver")


def started(tmp_path: Path, workers: int | None = None) -> dict[str, Part]:
    made = parts(OWNER, "of worker", Settings(data=tmp_path), workers)
    return {part.name: part for part in made}


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(("workers", "count"), [(None, 3), (2, 2), (9, 3)])
def test_a_worker_for_each_gpu_that_sees_that_one_alone(
    workers: int | None, count: int, tmp_path: Path
) -> None:
    found = [part for part in started(tmp_path, workers).values() if "cuda" in part.arguments]
    seen = [part.environment["CUDA_VISIBLE_DEVICES"] for part in found]
    assert seen == ["GPU-a", "GPU-b", "GPU-c"][:count]


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(("workers", "count"), [(None, 1), (4, 4)])
def test_without_a_gpu_the_cpu_device_grades(
    workers: int | None, count: int, tmp_path: Path
) -> None:
    found = [part for part in started(tmp_path, workers).values() if "cpu" in part.arguments]
    assert len(found) == count


@pytest.mark.usefixtures("no_gpu")
def test_only_the_web_process_knows_the_database(tmp_path: Path) -> None:
    known = {"web": {"of the owner"}, "cpu-0": {"of worker"}}
    found = started(tmp_path)
    assert found.keys() == known.keys()
    for name, part in found.items():
        known_to_it = " ".join([*part.environment.values(), *part.arguments]).replace("%20", " ")
        assert {secret for secret in SECRETS if secret in known_to_it} == known[name], name
        assert not any(secret in " ".join(part.arguments) for secret in SECRETS), "ps shows them"


FOREVER = "import time; time.sleep(1000)"


def test_a_killed_part_restarts_and_all_end_together() -> None:
    parts = [Part(name, "timeit", ["-n", "1", FOREVER], {}) for name in ("one", "other")]
    supervisor = Supervisor(None, parts)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        eventually(lambda: all(part.process is not None for part in parts), "started")
        first, other = parts[0].process, parts[1].process
        first.kill()
        eventually(lambda: parts[0].process not in (None, first), "started again")
        assert parts[1].process is other
        processes = [part.process for part in parts]
    finally:
        supervisor.stop()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert all(process is not None and process.poll() is not None for process in processes)


def test_workers_end_before_the_web_service() -> None:
    """Workers need the web service to give back their tasks."""
    ended = []

    class Noted(Part):
        def keep_running(self) -> None:
            supervisor.stop()

        def reap(self) -> None:
            ended.append(self.name)

    names = ["web", "cpu-0", "cpu-1"]
    supervisor = Supervisor(None, [Noted(name, "none", [], {}) for name in names])
    supervisor.run()
    assert ended == ["cpu-0", "cpu-1", "web"]
