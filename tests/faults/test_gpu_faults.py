"""What can break on a GPU machine, and two hundred gradings in a row."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path

import pytest

from harness.devices.available import open_device
from harness.grade import Options, grade
from harness.report import DeviceInfo, Tool
from problem.cases import Shape

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parent.parent.parent
SUBMISSIONS = ROOT / "tests" / "submissions"
MIXED = [
    ROOT / "solutions" / "02_shared_tile.cu",
    SUBMISSIONS / "wrong-answer" / "empty.cu",
    SUBMISSIONS / "memory-error" / "null_pointer.cu",
    SUBMISSIONS / "runtime-error" / "trap.cu",
    SUBMISSIONS / "time-limit" / "endless_loop.cu",
    SUBMISSIONS / "compile-error" / "syntax.cu",
    SUBMISSIONS / "race" / "no_barrier_after_loading.cu",
    SUBMISSIONS / "rule-violation" / "lazy_when_timed.cu",
]
QUICK = Options(device="cuda", quick=True, seconds=3)


def gpu_memory_used() -> int:
    import pynvml

    device = open_device("cuda")
    info = device.info()
    device.close()
    assert isinstance(info, DeviceInfo) and info.uuid is not None
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(info.uuid)
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


def children() -> int:
    own = str(os.getpid())
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "status").read_text()
            except OSError:
                continue
            count += status.partition("PPid:\t")[2].split()[0] == own
    return count


def held() -> dict[str, int]:
    return {
        "GPU memory, MiB": gpu_memory_used() >> 20,
        "processes": children(),
        "file handles": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "temporary folders": len(list(Path(tempfile.gettempdir()).glob("matmul-arena-*"))),
        "host memory, MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def test_gradings_in_a_row_leak_nothing() -> None:
    """MATMUL_ARENA_SOAK=200 for the long run."""
    count = int(os.environ.get("MATMUL_ARENA_SOAK", str(len(MIXED))))
    for path in MIXED:
        grade(path, QUICK)
    before = held()
    for number in range(count):
        path = MIXED[number % len(MIXED)]
        verdict = "accepted" if path.parent.name == "solutions" else path.parent.name
        assert grade(path, QUICK).verdict == verdict
    after = held()
    print(f"{count} gradings: {before} → {after}")
    slack = {"GPU memory, MiB": 64, "host memory, MiB": 256}
    for name, value in before.items():
        assert after[name] <= value + slack.get(name, 0), name


def test_a_full_gpu_is_not_the_submissions_fault() -> None:
    import cupy

    free, _ = cupy.cuda.runtime.memGetInfo()
    kept = cupy.cuda.Memory(free - (600 << 20))
    try:
        report = grade(MIXED[0], Options(device="cuda", seconds=10))
    finally:
        del kept
    assert report.verdict == "judge-error", report.outcome
    assert "MiB left" in getattr(report.outcome, "message", "")
    assert grade(MIXED[0], QUICK).verdict == "accepted"


def test_a_missing_sanitizer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.devices.cuda import sanitizer
    from harness.devices.device import Sanitize, Sanitized

    monkeypatch.setattr(sanitizer, "program", lambda: None)
    request = Sanitize(shapes=(Shape(17, 33, 18),), tools=tuple(Tool), seconds=10)
    answer = sanitizer.sanitize(None, request)  # type: ignore[arg-type]  # nothing is launched
    assert isinstance(answer, Sanitized) and "missing" in answer.program
    assert {run.status for run in answer.runs} == {"unavailable"}
    assert all("pip install" in (run.message or "") for run in answer.runs)
