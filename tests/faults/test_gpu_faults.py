"""Faults of a GPU machine, and what two hundred gradings leave behind."""

import gc
import os
import tempfile
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import read
from harness.judge.workers.session import open_session
from harness.protocol.errors import JudgeFailure
from harness.protocol.report import Report
from tests.grading import grade_file, lasting

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
QUICK = GradingOptions(quick=True, seconds=1)


def gpu_memory_used() -> int:
    import pynvml

    with open_session("cuda") as session:
        uuid = session.info.uuid
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


def host_memory_used() -> int:
    """Return the bytes that Python and NumPy hold, without OpenBLAS's buffers for each thread."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def held() -> dict[str, int]:
    own = psutil.Process()
    return {
        "GPU memory, MiB": gpu_memory_used() >> 20,
        "processes": len(own.children()),
        "file handles": own.num_fds(),
        "threads": own.num_threads(),
        "temporary folders": len(list(Path(tempfile.gettempdir()).glob("matmul-arena-*"))),
        "host memory, MiB": host_memory_used() >> 20,
    }


def verdict_of(path: Path) -> str:
    return "accepted" if path.parent.name == "solutions" else path.parent.name


def alongside(path: Path) -> Report:
    """Grade a file in a session of its own, without waiting for others on the GPU."""
    with open_session("cuda") as session:
        return grade(read(path), lasting(session), QUICK)


def test_many_gradings_leak_nothing() -> None:
    """MATMUL_ARENA_SOAK=200 for the long run. Several at a time: their times do not count."""
    count = int(os.environ.get("MATMUL_ARENA_SOAK", str(2 * len(MIXED))))
    paths = [MIXED[number % len(MIXED)] for number in range(count)]
    tracemalloc.start()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(alongside, MIXED))
        before = held()
        reports = list(pool.map(alongside, paths))
    after = held()
    tracemalloc.stop()
    for path, report in zip(paths, reports, strict=True):
        assert report.verdict == verdict_of(path), report.outcome
    slack = {"GPU memory, MiB": 64, "host memory, MiB": 256}
    for name, value in before.items():
        assert after[name] <= value + slack.get(name, 0), (name, before, after)


def test_a_full_gpu_is_not_the_submissions_fault() -> None:
    import cupy

    free, _ = cupy.cuda.runtime.memGetInfo()
    kept = cupy.cuda.Memory(free - (600 << 20))
    try:
        report = grade_file(MIXED[0], "cuda", GradingOptions(seconds=10))
    finally:
        del kept
    assert report.verdict == "judge-error", report.outcome
    assert "end other programs" in getattr(report.outcome, "message", "")
    assert grade_file(MIXED[0], "cuda", QUICK).verdict == "accepted"


def test_a_gpu_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as unplugged:
        unplugged.setenv("CUDA_VISIBLE_DEVICES", "")
        with pytest.raises(JudgeFailure, match="there is no GPU any more"):
            grade_file(MIXED[0], "cuda", QUICK)
    assert grade_file(MIXED[0], "cuda", QUICK).verdict == "accepted"


def test_errors_of_the_machine_are_not_the_kernels() -> None:
    """The errors of CUDA and NVML for a GPU that is lost, reset, or used by someone else."""
    import cupy
    import pynvml

    from harness.devices.cuda.errors import fault

    for code in (3, 35, 46, 100, 101, 214, 304, 801, 802, 803, 999):
        found = fault(cupy.cuda.runtime.CUDARuntimeError(code))
        assert found.cause == "judge" and "cudaError" in found.message, found
    found = fault(pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST))
    assert found.cause == "judge" and "does not answer" in found.message
