"""What an arena starts: each part with what it needs to know, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import URL

from harness.arena.arena import Settings, parts
from harness.arena.data_dir import DataDir, Secrets
from harness.arena.supervisor import Part
from harness.arena.workers import start

OWNER = URL.create("postgresql+psycopg", "owner", "of the owner", "db.example", database="contest")
SECRETS = Secrets(owner="of the owner", worker="of worker", cookies="of cookies")


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with three GPUs."""
    monkeypatch.setattr(start, "why_no_cuda", lambda: None)
    monkeypatch.setattr(start, "gpus", lambda: ["GPU-a", "GPU-b", "GPU-c"])


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "why_no_cuda", lambda: "there is no driver")


def started(tmp_path: Path, workers: int | None = None) -> dict[str, Part]:
    made = parts(OWNER, SECRETS, DataDir(tmp_path), Settings(workers=workers))
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
    known = {"web": {"of the owner", "of cookies"}, "cpu-0": {"of worker"}}
    found = started(tmp_path)
    assert found.keys() == known.keys()
    for name, part in found.items():
        told = " ".join([*part.environment.values(), *part.arguments]).replace("%20", " ")
        assert {secret for _, secret in SECRETS if secret in told} == known[name], name
        assert not any(secret in " ".join(part.arguments) for _, secret in SECRETS), "ps shows them"
