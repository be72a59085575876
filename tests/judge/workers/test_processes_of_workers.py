"""The environment of a worker's process, and the use or end of one that was started early."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.judge.workers import processes
from harness.judge.workers.isolation import Role
from harness.judge.workers.processes import environment
from harness.judge.workers.worker import Worker
from harness.protocol.compiler import Compile
from harness.protocol.report import CompileError


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("gpu", [None, "GPU-7"])
def test_a_process_gets_few_environment_variables(
    role: Role, gpu: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*os.environ]:
        monkeypatch.delenv(name)
    given = {"PATH": "/bin", "LD_LIBRARY_PATH": "/l", "CUDA_HOME": "/c", "CUDA_PATH": "/p"}
    given |= {"CUDA_VISIBLE_DEVICES": "0,1", "LANG": "C.UTF-8"}
    for name, value in (given | {"SECRET_TOKEN": "hunter2", "PYTHONPATH": "/mine"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(processes, "cache_directory", lambda: tmp_path / "cache")
    found = environment(role, tmp_path, gpu)
    assert found == given | {
        **({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}),
        "PYTHONPATH": f"{processes.ROOT}{os.pathsep}/mine",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "CUDA_CACHE_DISABLE": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MATMUL_ARENA_SCRATCH": str(tmp_path),
        **({"MATMUL_ARENA_CACHE": str(tmp_path / "cache")} if role is Role.CPU else {}),
    }


def test_the_first_worker_takes_the_process_started_early() -> None:
    processes.start_ahead(Role.COMPILER)
    ahead = processes.ahead[Role.COMPILER].process.pid
    with Worker(Role.COMPILER) as first, Worker(Role.COMPILER) as second:
        assert isinstance(first.ask(Compile(source="")), CompileError)
        assert first.process_id == ahead
        second.start()
        assert second.process_id not in (None, ahead)


def test_an_unused_process_ends_with_the_judge(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness", "grade", "--no-such-option"]
    told = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(processes.ROOT)}
    done = subprocess.run(
        command, env=os.environ | told, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "--no-such-option" in done.stderr
    assert not [*tmp_path.iterdir()]
