"""A launch is timed by two clocks, on matrices that only the checker writes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.judge.workers.isolation import Role
from harness.judge.workers.worker import Worker
from harness.protocol import timing as protocol
from harness.protocol.device import Load, Ready
from harness.protocol.request import Done, Fault
from harness.protocol.timing import TimingWorkers
from problem.cases import Case, Shape
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import compare
from tests.compiled import compiled

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
"""


@pytest.fixture(scope="module")
def workers() -> Iterator[TimingWorkers]:
    solution = compiled(SOLUTION.read_text(encoding="utf-8"))
    with (
        Worker(Role.CUDA) as kernel,
        Worker(Role.CUDA) as baseline,
        Worker(Role.CHECKER) as checker,
    ):
        assert isinstance(kernel.ask(Load(kernel=solution)), Ready)
        yield TimingWorkers(kernel, baseline, checker)


def test_both_multiply_the_checkers_matrices(workers: TimingWorkers) -> None:
    checker = workers.checker
    arguments = MATRIX_MULTIPLICATION.arguments(SHAPE)
    buffers = checker.ask(protocol.ShareBuffers(on_gpu="problem.gpu", arguments=arguments))
    assert isinstance(buffers, protocol.SharedBuffers), buffers
    seen = []
    for device, baseline in ((workers.kernel, None), (workers.baseline, "problem.gpu")):
        opened = device.ask(protocol.OpenBuffers(buffers=buffers, baseline=baseline, seconds=20))
        assert isinstance(opened, Done), opened
    for device in (workers.kernel, workers.baseline, workers.kernel):
        assert checker.ask(protocol.DrawInputs()) == Done()
        untouched = checker.ask(protocol.CheckLaunch())
        assert isinstance(untouched, protocol.Checked) and untouched.error == np.inf
        timed = device.ask(protocol.TimeLaunch(seconds=20))
        assert isinstance(timed, protocol.LaunchTime) and 0 < timed.ms < timed.host_ms, timed
        checked = checker.ask(protocol.CheckLaunch())
        assert isinstance(checked, protocol.Checked) and checked.error < 1, checked
        assert checked.changed_inputs == ()
        fetched = checker.ask(protocol.FetchLaunch())
        assert not isinstance(fetched, Fault)
        A, B = Case(SHAPE).draw(fetched.seed)
        assert compare(A, B, fetched.output).passed
        seen.append(A)
    assert not np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[0], seen[2])
    for device in (workers.kernel, workers.baseline):
        assert device.ask(protocol.CloseBuffers()) == Done()


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
