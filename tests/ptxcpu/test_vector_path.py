"""The vector path against the thread path: the same bits, the same faults."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from harness.devices.cpu.device import parameter_kinds
from harness.protocol.device import Sanitize
from harness.protocol.files import cache_directory
from harness.protocol.report import Hazard, Tool, WatchedBlocks
from harness.ptxcpu.analysis.inline import inline
from harness.ptxcpu.arguments import Buffer
from harness.ptxcpu.execution.cache import Cache
from harness.ptxcpu.grid import Size
from harness.ptxcpu.kernel import SECONDS, Kernel
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.results import Result
from harness.ptxcpu.runtime.layout import Cause
from harness.ptxcpu.vector.unroll import unrolled
from problem.cases import Shape
from problem.signature import SIGNATURE
from tests.compiled import compiled
from tests.ptxcpu.runner import KERNELS, Runner, inputs
from tests.requests import inputs_of
from tests.sources import named_parts

ROOT = Path(__file__).parents[2]
KINDS = parameter_kinds(SIGNATURE)
SHORT = (1, 2, 8, 12)
"""Solutions, one with each kind of tile. The others' translation for both paths takes longer."""

DEPENDING = (
    *("alternates", "cache_keyed_by_pointers", "looks_back_with_fences", "second_kernel"),
    *("splits_sums_among_blocks", "takes_tickets_with_cooperative_groups"),
)
"""Accepted submissions, most of them of blocks that depend on one another."""

SOURCES = [
    *(f"tests/submissions/accepted/{name}" for name in DEPENDING),
    *(f"solutions/{number:02}" for number in SHORT),
    *(
        pytest.param(f"solutions/{number:02}", marks=pytest.mark.architectures)
        for number in sorted({*range(1, 19)} - {*SHORT})
    ),
]


def source_of(name: str) -> str:
    (path,) = ROOT.glob(f"{name}*.cu")
    return path.read_text()


Floats = npt.NDArray[np.float32]


def kernels(source: str, optimised: bool = False) -> tuple[Kernel, Kernel]:
    """The same kernel for the vector path and for threads alone."""
    kernel = compiled(source)

    def made(vector_above: float) -> Kernel:
        return Kernel(
            kernel.ptx, kernel.entry, (16, 16, 1), KINDS, kernel.launch.shared_memory,
            cache=Cache(cache_directory()), vector_above=vector_above, optimised=optimised,
        )  # fmt: skip

    return made(0), made(float("inf"))


def run(
    kernel: Kernel, grid: Size, rows: int, inner: int, cols: int, seconds: float = SECONDS
) -> tuple[Floats, Result]:
    random = np.random.default_rng(rows)
    a = random.uniform(-1, 1, (rows, inner)).astype(np.float32)
    b = random.uniform(-1, 1, (inner, cols)).astype(np.float32)
    c = np.full((rows, cols), np.nan, np.float32)
    buffers = [Buffer(a, name="A"), Buffer(b, name="B"), Buffer(c, True, name="C")]
    return c, kernel.run(grid, [*buffers, rows, inner, cols], seconds=seconds)


def run_both(source: str, rows: int = 64, inner: int = 50, **how: bool) -> Result:
    """Return the result of 16 blocks on the vector path, which must be that of threads alone."""
    vector, threads = kernels(source, **how)
    assert vector.units is not None
    fast, quick = run(vector, (4, 4, 1), rows, inner, rows)
    slow, steady = run(threads, (4, 4, 1), rows, inner, rows)
    assert (quick.fault, quick.changed) == (steady.fault, steady.changed)
    assert steady.fault is not None or fast.tobytes() == slow.tobytes()
    return quick


@pytest.mark.parametrize("name", SOURCES)
def test_accepted_kernels_give_the_same_bits_on_both_paths(name: str) -> None:
    source = source_of(name)
    line = compiled(source).launch
    vector, threads = kernels(source)
    inner = (2 * line.tile_rows, 64, 4 * line.tile_columns)
    # What blocks leave for the next launch is the same, too, also for one with edges.
    for shape in (inner, (70, 33, 65), inner):
        grid = line.grid(shape[0], shape[2])
        fast, quick = run(vector, grid, *shape)
        slow, steady = run(threads, grid, *shape)
        assert quick.fault is steady.fault is None
        assert quick.vector_blocks > 0 or shape[0] == 70  # blocks at edges may be left to threads
        assert np.isfinite(fast).all() and fast.tobytes() == slow.tobytes()


@pytest.mark.parametrize(
    "body",
    [
        "atomicAdd(C, A[thread]);",
        "atomicCAS((int*)C, 0, thread);",
        "volatile float* t = tile; t[thread] = 1; *c = t[thread ^ 1];",
    ],
)
def test_order_dependent_results_are_left_to_threads(body: str) -> None:
    vector, _ = kernels(KERNEL.format(body=body))
    assert vector.units is None


FRAMES = named_parts(KERNELS / "vector_path_frames.cu.in")
KERNEL, TOGETHER = FRAMES["kernel"], FRAMES["kernel of dependent blocks"]
BODIES = named_parts(KERNELS / "vector_path.cu.in")
DEPENDENT = named_parts(KERNELS / "dependent_blocks.cu.in")


@pytest.mark.parametrize("name", DEPENDENT)
def test_dependent_blocks_agree_on_both_paths(name: str) -> None:
    quick = run_both(TOGETHER.format(body=DEPENDENT[name]))
    assert (quick.fault is None) is ("access" not in name and "outside" not in name)
    is_left = quick.fault is not None or "left" in name
    assert quick.vector_blocks == (0 if is_left else 16)


def test_lanes_that_wait_for_one_another_are_left_to_threads() -> None:
    body = (
        "if (thread % 32 == 0) while (!atomicAdd(flags + block, 0)) __nanosleep(20);"
        "if (thread % 32 == 1) atomicExch(flags + block, 1); *c = 1;"
    )
    vector, _ = kernels(TOGETHER.format(body=body))
    assert vector.units is not None
    fast, quick = run(vector, (1, 1, 1), 16, 16, 16)
    assert quick.fault is None
    assert quick.vector_blocks == 0
    assert (fast == 1).all()


LOOPS = {
    "counts up": ("0", "k < 24", "3", "k * K + j"),
    "counts down": ("20", "k >= 0", "-4", "k * K + j"),
    "an index that is shifted": ("0", "k != 16", "1", "(k << 3) + 2 * col + j"),
    "an address that moves out": ("0", "k < 10", "1", "(blockIdx.x == 2 ? k << 18 : k) + j"),
    "an unknown bound": ("0", "k < N", "1", "k + j"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_counted_loops_have_the_same_result_on_both_paths(name: str) -> None:
    keys = ("first", "condition", "by", "index")
    loop = dict(zip(keys, LOOPS[name], strict=True))
    source = KERNEL.format(body=FRAMES["counted loop"].format(**loop))
    kernel = inline(parse(compiled(source).ptx), "matrix_multiplication_kernel", 0, kinds=KINDS)
    assert (len(unrolled(kernel).body) > len(kernel.body)) is (name != "an unknown bound")
    quick = run_both(source)
    assert (quick.fault is None) is (name != "an address that moves out")
    assert quick.vector_blocks > 0


STEPS = {
    "a product for each sum": ("0", "sum[i][j] += x[i] * y[j];", ""),
    "sums that begin with one value": ("A[col]", "sum[i][j] += x[i] * y[j];", ""),
    "large products that cancel": ("1", "sum[i][j] += (k % 2 ? 1e9f : -1e9f) * y[j];", ""),
    "a sum that is read between": ("0", "sum[i][j] += x[i] * y[j];", "all += sum[k][2 * k];"),
    "a sum that is changed between": ("0", "sum[i][j] += x[i] * y[j];", "sum[k][1] *= 0.5f;"),
    "a sum that is stored between": ("0", "sum[i][j] += x[i] * y[j];", "tile[thread] = sum[k][3];"),
    "sums that are factors": ("1", "sum[i][j] += x[i] * sum[j][i];", ""),
    "sums of sums": ("1", "sum[i][j] = x[i] * y[j] + sum[j][i];", ""),
}
"""How each sum begins, what happens to it in each step, and what happens after each step."""


@pytest.mark.parametrize("name", STEPS)
def test_many_sums_have_the_same_bits_on_both_paths(name: str) -> None:
    keys = ("start", "step", "between")
    body = FRAMES["many sums"].format(**dict(zip(keys, STEPS[name], strict=True)))
    done = run_both(KERNEL.format(body=body), 80, optimised=True)
    assert done.fault is None and done.vector_blocks == 16


LEFT = {
    "loops of different lengths",
    "a barrier after an early exit",
    "lanes that read two arrays",
    "a shared access outside",
    "a misaligned vector",
    "a write to an input",
}
"""Kernels that the vector path leaves to threads in every block."""


DATA_DECIDE = named_parts(KERNELS / "data_decide.cu.in")
SWEPT = {
    **{name: KERNEL.format(body=body) for name, body in BODIES.items()},
    **{
        name: f"// solve: shared_memory=1024\n{KERNEL.format(body=body)}"
        for name, body in DATA_DECIDE.items()
    },
    **{name: TOGETHER.format(body=body) for name, body in DEPENDENT.items()},
}


TRACKED = (
    "{ .reg .pred p; .reg .b32 x, y; .shared .align 8 .b64 done; mov.u32 x, %tid.x; "
    "mov.u32 y, %tid.y; or.b32 x, x, y; setp.eq.u32 p, x, 0; "
    "@p mbarrier.init.shared.b64 [done], 256; bar.sync 0; "
    "cp.async.mbarrier.arrive.noinc.shared.b64 [done]; "
)
WAITS = {
    f"{TRACKED} }}": lambda a, b: np.arange(256),
    f"{TRACKED} AGAIN: mbarrier.try_wait.parity.shared.b64 p, [done], 0; @!p bra AGAIN; }}": (
        lambda a, b: b
    ),
    "": lambda a, b: np.arange(256),
    "cp.async.wait_group 2;": lambda a, b: np.arange(256),
    "cp.async.wait_group 1;": lambda a, b: np.where(np.arange(256) % 5, a, 0),
    "cp.async.wait_group 0;": lambda a, b: b,
    "cp.async.wait_all;": lambda a, b: b,
}
"""How a kernel may wait for two copies, and what is in shared memory then."""


@pytest.mark.parametrize("wait", WAITS)
def test_copies_arrive_at_the_wait_on_both_paths(wait: str) -> None:
    body = FRAMES["two copies"].replace("{wait}", wait)
    a, b = (np.random.default_rng(seed).random((16, 16)).astype(np.float32) for seed in (1, 2))
    held = WAITS[wait](a.reshape(-1), b.reshape(-1)).astype(np.float32)
    vector, threads = kernels(KERNEL.format(body=body))
    for kernel, blocks in ((vector, 1), (threads, 0)):
        c = np.zeros((16, 16), np.float32)
        result = kernel.run((1, 1, 1), [Buffer(a), Buffer(b), Buffer(c, True), 16, 16, 16])
        assert result.fault is None and result.vector_blocks == blocks
        assert (c.reshape(-1) == held[np.arange(256) ^ 1]).all()


@pytest.mark.parametrize("name", SWEPT)
def test_a_sweep_finds_the_bad_accesses_of_a_run(name: str) -> None:
    vector, threads = kernels(SWEPT[name])
    a = np.ones((64, 64), np.float32)
    arguments = [Buffer(a), Buffer(a), Buffer(np.ones((64, 64), np.float32), True), 64, 50, 64]
    swept = vector.sweep((4, 4, 1), arguments)
    fault = threads.run((4, 4, 1), arguments).fault
    if swept is None:
        assert name in LEFT or vector.blocks_depend or (fault and fault.finding is None)
    else:
        assert (swept.fault and swept.fault.finding) == (fault and fault.finding)
        assert fault or name in LEFT or swept.vector_blocks == 16
    assert (fault is not None) or name not in DATA_DECIDE


@pytest.mark.parametrize("name", BODIES)
def test_small_kernels_have_the_same_result_on_both_paths(name: str) -> None:
    quick = run_both(KERNEL.format(body=BODIES[name]))
    assert quick.vector_blocks or name in LEFT


ALIKE = {
    "one step": "for (int i = thread; i < 256; i += 256) { STEP }",
    "four steps": "for (int i = thread; i < 1024; i += 256) { STEP }",
    "many steps": "for (int i = thread; i < 6144; i += 256) { STEP }",
    "down": "for (int i = 1023 - thread; i >= 0; i -= 256) { STEP }",
    "of unsigned numbers": "for (unsigned i = thread; i <= 767 + threadIdx.x; i += 256) { STEP }",
    "behind a test": "if (thread + 3 < 259) for (size_t i = thread; i < 512; i += 256) { STEP }",
    "to the greater of two": "for (int i = thread; i < max(512, thread); i += 256) { STEP }",
}
"""Loops that all threads run equally often."""

APART = {
    "to no multiple": "for (int i = thread; i < 1000; i += 256) { STEP }",
    "in an odd step": "for (int i = thread; i < 1024; i += 255) { STEP }",
    "by a shifted position": "for (int i = thread * 5 >> 3; i < 1024; i += 256) { STEP }",
    "from below zero": "for (int i = thread - 7; i < 1017 - 4 * (thread < 7); i += 256) { STEP }",
    "around the end of the numbers": (
        "unsigned i = thread + 4294966900u;for (int n = 0; i > 255 && n < 9; ++n, i += 64) { STEP }"
    ),
    "one half of the threads": "if ((thread & 255) > 127) { int i = thread - (thread & 3); STEP }",
    "of bits": "int i = thread - (thread & ~12 | 16); if (i < 0 != thread > 90) { STEP }",
}
"""Loops and branches that seem to be of that kind."""


@pytest.mark.parametrize("name", ALIKE)
def test_loops_that_all_threads_run_equally_often_may_have_barriers(name: str) -> None:
    step = "tile[i & 255] = i + x; __syncthreads(); x = 3 * tile[i * 7 & 255]; __syncthreads();"
    body = "float x = 1; tile[thread] = 0;" + ALIKE[name].replace("STEP", step) + "*c = x;"
    quick = run_both(KERNEL.format(body=body), inner=16)
    assert quick.fault is None and quick.vector_blocks == 16


@pytest.mark.parametrize("name", ALIKE | APART)
def test_loops_over_positions_have_the_same_result_on_both_paths(name: str) -> None:
    step = "x = x * 0.5f + A[i & 1023]; ++steps;"
    loop = (ALIKE | APART)[name].replace("STEP", step)
    body = f"float x = 1; int steps = 0; {loop} *c = x + steps;"
    quick = run_both(KERNEL.format(body=body), inner=16)
    assert quick.fault is None


def sampled() -> Sanitize:
    """Watch three blocks of 1600."""
    shape = Shape(640, 32, 640)
    sample = inputs_of(shape, *inputs(shape), (0, 1, 2))
    return Sanitize(launches=(sample,), tools=tuple(Tool), seconds=60)


def test_a_bad_access_outside_the_sampled_blocks_is_found(cpu: Runner) -> None:
    body = "*c = A[row * N + (col & 15) + (blockIdx.x == 37 && blockIdx.y == 21 ? 1 << 22 : 0)];"
    cpu.load(KERNEL.format(body=body))
    (found,) = cpu.device.sanitize(sampled()).findings
    assert found.hazard is Hazard.OUT_OF_BOUNDS
    assert found.at.block == (37, 21, 0)


def test_a_sanitizer_says_how_many_blocks_it_ran(cpu: Runner) -> None:
    runs = (
        (KERNEL.format(body="*c = 1;"), 3, 1600),
        (KERNEL.format(body="atomicAdd(C, 1.0f);"), 1, 0),
        (TOGETHER.format(body="*c = 1 + (atomicAdd(&taken, 1) >> 31);"), 1, 1600),
        (TOGETHER.format(body="*c = taken; for (int i = 0; i < thread; ++i) *c = ++taken;"), 1, 0),
    )
    for source, watched, bounded in runs:
        cpu.load(source)
        answer = cpu.device.sanitize(sampled())
        assert answer.sampled == WatchedBlocks(blocks=1600, watched=watched, bounded=bounded)


def test_a_busy_machine_does_not_make_launches_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    team = 2
    monkeypatch.setattr("harness.ptxcpu.execution.launch.available_cores", lambda: team)
    blocks = range(2 * team)
    body = "float x = 1; for (int i = 0; i < 4000 * N; i++) x = A[thread] + x * 0.5f; *c = x;"
    _, threads = kernels(KERNEL.format(body=body))
    a = np.ones((64, 50), np.float32)
    arguments = [Buffer(a), Buffer(a), Buffer(np.ones((64, 64), np.float32), True), 64, 50, 64]
    threads.run((4, 4, 1), arguments, blocks=blocks)
    began = time.process_time()
    threads.run((4, 4, 1), arguments, blocks=blocks)
    needed = (time.process_time() - began) / team
    core = min(os.sched_getaffinity(0))
    busy = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"]
    others = [subprocess.Popen(busy) for _ in range(6)]
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, [core])
        result = threads.run((4, 4, 1), arguments, blocks=blocks, seconds=1.5 * needed)
        assert result.fault is None
    finally:
        os.sched_setaffinity(0, cores)
        for other in others:
            other.kill()
            other.wait()


def test_a_launch_that_does_not_end_stops_at_its_limit() -> None:
    body = "float x = 1; while (x > -N) x = A[thread] + x * 0.5f; *c = x;"
    vector, _ = kernels(KERNEL.format(body=body))
    assert vector.units is not None
    _, result = run(vector, (4, 4, 1), 64, 50, 64, seconds=0.5)
    assert result.fault.cause is Cause.TIME_LIMIT


def test_a_hang_of_the_vector_path_is_reported_in_its_line() -> None:
    body = "__shared__ int go;\ngo = 0;\n__syncthreads();\nwhile (go == 0) {} *c = go;"
    vector, _ = kernels(KERNEL.format(body=body))
    assert vector.units is not None
    _, result = run(vector, (4, 4, 1), 64, 50, 64, seconds=0.5)
    first = KERNEL[: KERNEL.index("{body}")].count("\n") + 1
    assert result.fault.cause is Cause.TIME_LIMIT
    assert result.fault.at.line == first + 3


class _SlowCache(Cache):
    """A cache of a machine on which a translation for the vector path takes a second."""

    def get(self, key: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
        if key[0] == "units":
            end = time.process_time() + 1
            while time.process_time() < end:
                pass
        return super().get(key, make)


def test_a_slow_translation_does_not_end_a_launch() -> None:
    given = compiled(source_of("solutions/02"))
    cache = _SlowCache(cache_directory())
    slow = Kernel(given.ptx, given.entry, (16, 16, 1), KINDS, cache=cache, vector_above=0)
    _, result = run(slow, (2, 2, 1), 32, 32, 32, seconds=0.5)
    assert result.fault is None
    assert result.vector_blocks == 4
