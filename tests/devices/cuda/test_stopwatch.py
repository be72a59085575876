"""Two clocks for one launch: a kernel that changes what one of them says is found out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from harness.judge.stages.score import judge_clocks
from harness.judge.workers.isolation import Role
from harness.judge.workers.worker import Worker
from harness.protocol.compiler import Compiled
from harness.protocol.device import Load, Ready
from harness.protocol.report import Round, RuleViolation
from harness.protocol.request import Done, Fault
from harness.protocol.timing import (
    Attach,
    Checked,
    CheckLaunch,
    Detach,
    DrawInputs,
    FetchLaunch,
    LaunchTime,
    LayOut,
    SharedMatrices,
    TimeLaunch,
    TimingWorkers,
)
from problem.cases import Case, Shape
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import compare
from tests.compile_worker import Compiling

pytestmark = pytest.mark.gpu

SHAPE = Shape(512, 256, 384)
SOLUTION = Path(__file__).resolve().parent.parent.parent.parent / "solutions" / "02_shared_tile.cu"

KERNELS = r"""
__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

extern "C" __global__ void wait(unsigned long long nanoseconds) {
    unsigned long long start = now();
    while (now() < start + nanoseconds) {}
}

extern "C" __global__ void tell(unsigned long long* time) { *time = now(); }

// Waits, then says of all that began within the millisecond before it that it began later.
extern "C" __global__ void wait_and_lie(unsigned long long nanoseconds,
                                        volatile unsigned long long* words, int count) {
    __shared__ unsigned long long start;
    if (threadIdx.x == 0) start = now();
    __syncthreads();
    while (now() < start + nanoseconds) {}
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        unsigned long long word = words[i];
        if (word <= start && word > start - 1000000) words[i] = word + nanoseconds / 4 * 3;
    }
    __threadfence_system();
}
"""


@pytest.fixture(scope="module")
def workers(compiling: Compiling) -> Iterator[TimingWorkers]:
    compiled = compiling(SOLUTION.read_text(encoding="utf-8"))
    assert isinstance(compiled, Compiled)
    with (
        Worker(Role.CUDA) as kernel,
        Worker(Role.CUDA) as baseline,
        Worker(Role.CHECKER) as checker,
    ):
        assert isinstance(kernel.ask(Load(kernel=compiled.kernel)), Ready)
        yield TimingWorkers(kernel, baseline, checker)


def test_both_multiply_the_checkers_matrices(workers: TimingWorkers) -> None:
    checker = workers.checker
    matrices = checker.ask(
        LayOut(on_gpu="problem.gpu", arguments=MATRIX_MULTIPLICATION.arguments(SHAPE))
    )
    assert isinstance(matrices, SharedMatrices), matrices
    seen = []
    for device, baseline in ((workers.kernel, None), (workers.baseline, "problem.gpu")):
        attached = device.ask(Attach(matrices=matrices, baseline=baseline, seconds=20))
        assert isinstance(attached, Done), attached
    for device in (workers.kernel, workers.baseline, workers.kernel):
        assert checker.ask(DrawInputs()) == Done()
        untouched = checker.ask(CheckLaunch())
        assert isinstance(untouched, Checked) and untouched.error == np.inf
        timed = device.ask(TimeLaunch(seconds=20))
        assert isinstance(timed, LaunchTime) and 0 < timed.ms < timed.host_ms, timed
        checked = checker.ask(CheckLaunch())
        assert isinstance(checked, Checked) and checked.error < 1, checked
        assert checked.changed_inputs == ()
        fetched = checker.ask(FetchLaunch())
        assert not isinstance(fetched, Fault)
        A, B = Case(SHAPE).draw(fetched.seed)
        assert compare(A, B, fetched.output).passed
        seen.append(A)
    assert not np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[0], seen[2])
    for device in (workers.kernel, workers.baseline):
        assert device.ask(Detach()) == Done()


def test_times_that_a_kernel_changed_are_not_believed() -> None:
    import cupy

    from harness.devices.cuda.stopwatch import Stopwatch

    module = cupy.RawModule(code=KERNELS)
    wait, lie = module.get_function("wait"), module.get_function("wait_and_lie")
    duration = np.uint64(4_000_000)
    stopwatch = Stopwatch()

    def honest() -> None:
        wait((1,), (1,), (duration,))

    def lying(words: int, count: int) -> None:
        lie((1,), (1024,), (duration, np.uint64(words), np.int32(count)))

    honest()
    stopwatch.time(honest)
    for place in where_times_are_kept():
        lying(*place)
        times = [(stopwatch.time(partial(lying, *place)), stopwatch.time(honest)) for _ in range(5)]
        if all(lied.ms < told.ms for lied, told in times):
            break
    else:
        pytest.skip("this driver keeps the times of events where this test does not find them")
    assert isinstance(judge_clocks([pair(*each) for each in times]), RuleViolation)
    assert isinstance(judge_clocks([pair(told, told) for _, told in times]), tuple)


@pytest.mark.gpu
def test_cycles_tell_how_long_a_launch_takes_at_any_clock() -> None:
    """The clock of a GPU that works lies between a fifth of its highest and the highest."""
    import cupy

    from harness.devices.cuda.clocks import Clocks
    from harness.devices.cuda.stopwatch import Stopwatch

    wait = cupy.RawModule(code=KERNELS).get_function("wait")
    stopwatch, highest = Stopwatch(), Clocks().max_mhz
    wait((1,), (1,), (np.uint64(1),))
    for milliseconds in (2, 8):
        timed = stopwatch.time(lambda ms=milliseconds: wait((1,), (1,), (np.uint64(ms * 10**6),)))
        assert 0.2 * highest < timed.cycles / timed.ms / 1e3 < 1.02 * highest
    assert stopwatch.time(lambda: None).cycles < timed.cycles / 100


@pytest.mark.gpu
def test_launches_back_to_back_have_a_time_and_an_energy() -> None:
    import cupy

    from harness.devices.cuda.stopwatch import Stopwatch

    wait = cupy.RawModule(code=KERNELS).get_function("wait")
    wait((1,), (1,), (np.uint64(1),))
    prepared: list[int] = []

    def launch() -> None:
        wait((1,), (1,), (np.uint64(10**6),))

    found = Stopwatch().sustain(launch, lambda: prepared.append(1), seconds=0.5)
    assert len(prepared) == found.launches > 1
    assert 1e-3 <= found.seconds / found.launches < 2e-3
    assert found.joules is None or found.joules > 0


def pair(kernel: LaunchTime, baseline: LaunchTime) -> Round:
    return Round(
        kernel_ms=kernel.ms,
        baseline_ms=baseline.ms,
        kernel_host_ms=kernel.host_ms,
        baseline_host_ms=baseline.host_ms,
        kernel_first=False,
        clock_mhz=0,
        power_w=0,
        check=0,
    )


def where_times_are_kept() -> list[tuple[int, int]]:
    """Address and number of the 64-bit words of each piece of the driver's memory with a recent
    time in it. This process sees them, where a kernel would have to know."""
    import cupy

    tell = cupy.RawModule(code=KERNELS).get_function("tell")
    time = cupy.zeros(1, np.uint64)
    event = cupy.cuda.Event()
    event.record()
    tell((1,), (1,), (time,))
    now = int(time.get()[0])
    places = []
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in Path("/proc/self/maps").read_text().splitlines():
            if "/dev/nvidia" not in line or " rw" not in line:
                continue
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            try:
                words = np.frombuffer(os.pread(memory.fileno(), end - begin, begin), np.uint64)
            except OSError:
                continue
            recent = (words > now - 10_000_000) & (words < now)
            if recent.any() and begin < 1 << 40:  # above that, where the host alone sees it
                places.append((begin, words.size))
    return places
