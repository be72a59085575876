"""The CPU sanitizer: it works while a GPU does, and ends when it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.protocol.compiler import Compiled, Kernel
from harness.protocol.device import Counted, Sanitized
from harness.protocol.request import Fault
from harness.report import Hazard, Race
from harness.stages.sanitize import diagnose_hang
from harness.workers.cpu_sanitizer import CpuSanitizer
from problem.cases import RANKED, Case, Shape
from tests.compile_worker import Compiling
from tests.requests import count_on, sanitize_on
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).resolve().parent.parent.parent
ENDLESS = "tests/submissions/time-limit/endless_loop.cu"
SHAPE = Shape(17, 33, 18)
REQUEST = sanitize_on(SHAPE, seconds=20)


@pytest.fixture
def sanitizer() -> Iterator[CpuSanitizer]:
    sanitizer = CpuSanitizer()
    yield sanitizer
    sanitizer.reset()


def kernel(compiling: Compiling, path: str) -> Kernel:
    compiled = compiling((ROOT / path).read_text(encoding="utf-8"))
    assert isinstance(compiled, Compiled)
    return compiled.kernel


def test_it_sanitizes_and_counts_what_it_was_given(
    sanitizer: CpuSanitizer, compiling: Compiling
) -> None:
    sanitizer.load(kernel(compiling, "tests/submissions/race/no_barrier_after_loading.cu"))
    found = sanitizer.sanitize(REQUEST).result()
    assert isinstance(found, Sanitized) and found.findings
    sanitizer.load(kernel(compiling, "solutions/02_shared_tile.cu"))
    found = sanitizer.sanitize(REQUEST).result()
    assert isinstance(found, Sanitized) and not found.findings
    counted = sanitizer.count(count_on(SHAPE, 2, seconds=20)).result()
    assert isinstance(counted, Counted)


def test_resetting_ends_what_it_is_at(sanitizer: CpuSanitizer, compiling: Compiling) -> None:
    sanitizer.load(kernel(compiling, ENDLESS))
    asked = sanitizer.sanitize(sanitize_on(SHAPE, seconds=PATIENCE))
    eventually(lambda: sanitizer.worker.process_id, "begun")
    sanitizer.reset()
    assert asked.done() and sanitizer.worker.process_id is None
    ended = None if asked.cancelled() else asked.result()
    assert ended is None or (isinstance(ended, Fault) and ended.cause == "judge"), ended


def test_it_tells_why_a_launch_hangs(sanitizer: CpuSanitizer, compiling: Compiling) -> None:
    case = Case(Shape(27, 37, 39))
    barrier = kernel(compiling, "tests/submissions/race/barrier_in_a_branch.cu")
    why = diagnose_hang(sanitizer, barrier, case, seed=1)
    assert isinstance(why, Race)
    assert why.findings[0].hazard in (Hazard.DIVERGENT_BARRIER, Hazard.DEADLOCK)
    assert diagnose_hang(sanitizer, barrier, RANKED, seed=1) is None
    endless = kernel(compiling, ENDLESS)
    assert diagnose_hang(sanitizer, endless, case, seed=1) is None
