"""The CPU device beside a GPU: it works while others do, and ends when it is told to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.compiling.kernel import Compiled, Kernel
from harness.devices.device import Count, Fault, Sanitize, Sanitized
from harness.report import Counters, Hazard, Race, Tool
from harness.stages.sanitize import why_it_hung
from harness.workers.companion import Companion
from problem.cases import RANKED, Shape
from tests.compile_worker import Compiling

ROOT = Path(__file__).resolve().parent.parent.parent
SHAPE = Shape(17, 33, 18)
REQUEST = Sanitize(shapes=(SHAPE,), tools=tuple(Tool), seconds=20)


@pytest.fixture
def companion() -> Iterator[Companion]:
    companion = Companion()
    companion.start()
    yield companion
    companion.close()


def kernel(compiling: Compiling, path: str) -> Kernel:
    compiled = compiling((ROOT / path).read_text(encoding="utf-8"))
    assert isinstance(compiled, Compiled)
    return compiled.kernel


def test_it_sanitizes_and_counts_what_it_was_given(
    companion: Companion, compiling: Compiling
) -> None:
    companion.load(kernel(compiling, "tests/submissions/race/no_barrier_after_loading.cu"))
    found = companion.sanitize(REQUEST).result()
    assert isinstance(found, Sanitized) and found.findings
    companion.load(kernel(compiling, "solutions/02_shared_tile.cu"))
    found = companion.sanitize(REQUEST).result()
    assert isinstance(found, Sanitized) and not found.findings
    counted = companion.count(Count(shape=SHAPE, max_blocks=2, seconds=20))
    assert isinstance(counted, Counters)


def test_closing_ends_what_it_is_at(companion: Companion, compiling: Compiling) -> None:
    companion.load(kernel(compiling, "solutions/18_default_launch.cu"))  # takes seconds
    asked = companion.sanitize(REQUEST)
    time.sleep(0.3)
    started = time.monotonic()
    companion.close()
    assert time.monotonic() - started < 2
    assert asked.cancelled() or isinstance(asked.result(), Fault)
    assert companion.device.worker.process_id is None


def test_it_tells_why_a_launch_hangs(companion: Companion, compiling: Compiling) -> None:
    shape = Shape(27, 37, 39)
    companion.load(kernel(compiling, "tests/submissions/race/barrier_in_a_branch.cu"))
    why = why_it_hung(companion.sanitize, shape)
    assert isinstance(why, Race)
    assert why.findings[0].hazard in (Hazard.DIVERGENT_BARRIER, Hazard.DEADLOCK)
    assert why_it_hung(companion.sanitize, RANKED.shape) is None
    companion.load(kernel(compiling, "tests/submissions/time-limit/endless_loop.cu"))
    assert why_it_hung(companion.sanitize, shape) is None
