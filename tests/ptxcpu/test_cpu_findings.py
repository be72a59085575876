"""Checks find the errors of these kernels, with their places, and none in others.

Further kernels with one error each are in tests/submissions and in the litmus tests.
"""

import pytest

from harness.protocol.device import Sanitize, Sanitized
from harness.protocol.report import Array, Hazard, Tool
from harness.protocol.request import Fault
from harness.ptxcpu.runtime import layout
from problem.cases import Shape
from tests.ptxcpu.runner import KERNELS, Runner, line_of
from tests.requests import given
from tests.sources import kernel

SUBMISSIONS = KERNELS.parent.parent / "submissions"
SHAPE = Shape(17, 33, 18)
EVEN = Shape(32, 32, 32)
ODD = Shape(5, 33, 18)
ID = "int id = threadIdx.y * 16 + threadIdx.x;\n"


@pytest.mark.parametrize(
    "name", ["atomics", "functions", "released_tile", "shuffle_sum", "warp_ordered"]
)
def test_a_kernel_without_an_error_is_clean(cpu: Runner, name: str) -> None:
    cpu.load_file(name)
    assert cpu.findings(SHAPE) == ()


FOUND = {
    # kernel: (shape, hazard, tool, array, words of the line)
    "shared_overflow": (SHAPE, Hazard.OUT_OF_BOUNDS, Tool.MEMCHECK, Array.SHARED, "first[id] = "),
    "uninitialised_local": (ODD, Hazard.UNINITIALISED, Tool.INITCHECK, Array.LOCAL, "sum +="),
    "reads_c": (ODD, Hazard.UNINITIALISED, Tool.INITCHECK, "C", "+="),
    "missing_lanes": (EVEN, Hazard.DIVERGENT_BARRIER, Tool.SYNCCHECK, None, "__shfl_sync"),
    "lane_not_named": (EVEN, Hazard.DIVERGENT_BARRIER, Tool.SYNCCHECK, None, "__ballot_sync"),
}


@pytest.mark.parametrize("name", FOUND)
def test_an_error_and_its_place(cpu: Runner, name: str) -> None:
    shape, hazard, tool, array, text = FOUND[name]
    cpu.load_file(name)
    finding = cpu.finding(shape, hazard)
    assert (finding.tool, finding.array) == (tool, array)
    assert finding.at.line == line_of(name, text)
    if name == "shared_overflow":  # into the next array
        assert finding.bytes_outside == 0 and "first" in finding.message


@pytest.mark.parametrize("part", range(4))
def test_any_part_of_a_wide_read_may_be_uninitialised(cpu: Runner, part: int) -> None:
    body = f"""__shared__ __align__(16) float s[4];
    if (id < 4 && id != {part}) s[id] = A[id];
    __syncthreads();
    if (id == 0) {{ float4 v = *(float4*)s; C[0] = v.x + v.y + v.z + v.w; }}"""
    cpu.load(kernel(ID + body))
    assert cpu.finding(Shape(16, 16, 16), Hazard.UNINITIALISED).size == 16


@pytest.mark.parametrize(
    "operation",
    ["atomicAdd(&s, 1)", "atomicExch(&s, 1)", "atomicCAS(&s, 0, 1)", "atomicMax(&s, 1)"],
)
def test_an_atomic_on_uninitialised_memory(cpu: Runner, operation: str) -> None:
    body = f"{ID} __shared__ int s; {operation}; __syncthreads(); C[id] = s;"
    cpu.load(kernel(body))
    finding = cpu.finding(Shape(16, 16, 16), Hazard.UNINITIALISED)
    assert finding.access == "atomic" and finding.array == Array.SHARED
    cpu.load(kernel(body.replace("int s;", "int s; if (id == 0) s = 0; __syncthreads();")))
    assert cpu.findings(Shape(16, 16, 16)) == ()


def test_a_flag_counts_beyond_the_addresses_that_are_kept(cpu: Runner) -> None:
    body = f"""{ID} if (blockIdx.x == 0) {{
        if (id == 0) data = 1;
        __threadfence();
        for (int i = id; i < {layout.SYNC_ADDRESSES}; i += 256) atomicAdd(&counts[i], 1);
        __syncthreads();
        if (id == 0) {{ __threadfence(); atomicExch(&flag, 1); }}
    }} else if (id == 0) {{
        while (atomicAdd(&flag, 0) == 0) {{}}
        __threadfence();
        C[0] = data;
    }}"""
    variables = f"__device__ int counts[{layout.SYNC_ADDRESSES}], flag, data;"
    cpu.load(f"{variables} {kernel(body)}")
    assert cpu.findings(Shape(16, 16, 32)) == ()


def test_dynamic_shared_memory_is_as_large_as_the_launch_says(cpu: Runner) -> None:
    body = """extern __shared__ float s[];
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    s[id] = bytes;
    __syncthreads();
    C[id] = s[255 - id];"""
    source = kernel(ID + body)
    cpu.load("// solve: shared_memory=1024\n" + source)
    C = cpu.finish(Shape(16, 16, 16)).output
    assert (C == 1024).all() and cpu.findings(Shape(16, 16, 16)) == ()
    cpu.load("// solve: shared_memory=1020\n" + source)
    finding = cpu.fault(Shape(16, 16, 16)).finding
    assert finding is not None and finding.array == Array.SHARED and finding.bytes_outside == 0


def test_write_before_c(cpu: Runner) -> None:
    cpu.load_file("writes_before_c")
    finding = cpu.fault(SHAPE).finding
    assert (finding.array, finding.access, finding.bytes_outside) == ("C", "write", 0)
    assert (finding.row, finding.column) == (-1, 17)
    assert finding.at.thread == (3, 2, 0) and finding.at.block == (1, 1, 0)
    assert "before its beginning" in finding.message


@pytest.mark.parametrize("name", ["no_barrier_after_store", "no_barrier_after_load"])
def test_race_names_both_accesses(cpu: Runner, name: str) -> None:
    cpu.load_file(name)
    found = [f for f in cpu.findings(EVEN) if f.hazard is Hazard.RACE]
    pairs = {frozenset((f.at.line, f.other.line if f.other else None)) for f in found}
    use = line_of(name, "sum += ")
    assert frozenset((line_of(name, "As[ty][tx] = "), use)) in pairs
    assert frozenset((line_of(name, "Bs[ty][tx] = "), use)) in pairs
    for f in found:
        assert f.other is not None and f.at.thread != f.other.thread
        assert f.tool is Tool.RACECHECK and f.array == Array.SHARED


REFILLS = (SUBMISSIONS / "race" / "refills_what_the_product_reads.cu").read_text()
COMMIT = 'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");'
WAIT = 'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'


@pytest.mark.parametrize(
    ("behind_the_products", "races"),
    [
        (f"{COMMIT} {WAIT}", False),
        (f"{COMMIT} {COMMIT} {WAIT.replace('0;', '1;')}", False),
        (f"{COMMIT} {WAIT.replace('0;', '1;')}", True),
        (WAIT, True),
        (COMMIT, True),
    ],
    ids=["waited for", "an empty group is not", "it is not", "not committed", "no wait"],
)
def test_products_read_until_their_group_was_waited_for(
    cpu: Runner, behind_the_products: str, races: bool
) -> None:
    cpu.load(REFILLS.replace(COMMIT, behind_the_products))
    found = cpu.findings(SHAPE)
    assert {f.hazard for f in found} == ({Hazard.RACE} if races else set())
    assert any("may still read" in f.message for f in found) is races


@pytest.mark.parametrize("wait", [WAIT, ""], ids=["waited for", "not waited for"])
def test_one_lane_signals_that_its_warp_has_waited(cpu: Runner, wait: str) -> None:
    counter = '"r"((unsigned)__cvta_generic_to_shared(&released)) : "memory");'
    counts = f'asm volatile("red.release.cta.shared::cta.add.u32 [%0], 1;" :: {counter}'
    asks = f'asm volatile("ld.acquire.cta.shared::cta.u32 %0, [%1];" : "=r"(n) : {counter}'
    source = REFILLS.replace(COMMIT, f"{COMMIT} {wait} if (lane == 0) {counts}")
    fields = {
        "float d[8] = {};": "float d[8] = {}; __shared__ int released; if (id == 0) released = 0;"
        " __syncthreads();",
        "for (int i = id; i < 80 * 8; i += 256)": "for (int n = -1; id > 127 && n < n0 / 2;)"
        f" {asks} for (int i = id - 128; i >= 0 && i < 80 * 8; i += 128)",
        "__syncthreads();\n    }\n": "}\n",
    }
    for old, new in fields.items():
        assert old in source
        source = source.replace(old, new)
    cpu.load(source)
    assert {f.hazard for f in cpu.findings(SHAPE)} == (set() if wait else {Hazard.RACE})


def test_a_product_needs_all_four_warps(cpu: Runner) -> None:
    awaited = REFILLS.replace(COMMIT, f"{COMMIT} {WAIT}")
    cpu.load(awaited.replace("if (warp < 4) {", "if (warp < 3) {"))
    finding = cpu.finding(SHAPE, Hazard.DIVERGENT_BARRIER)
    assert "product of four warps" in finding.message and finding.at.line == 18
    cpu.load(awaited.replace("if (warp < 4) {", "if (warp < 4 + 0 * N) {"))
    assert cpu.findings(SHAPE) == ()


def test_products_of_one_block_are_not_pending_in_the_next(cpu: Runner) -> None:
    cpu.load(REFILLS.replace(WAIT, "").replace("= d[i];", "= 1.0f;"))
    assert cpu.findings(Shape(150, 8, 40)) == ()


def test_each_of_many_wrong_lines_is_found_and_counted(cpu: Runner) -> None:
    lines = "\n".join(f"C[{i}] = A[(1 << 28) + {i}];" for i in range(700))
    cpu.load(kernel(lines))
    found = cpu.findings(Shape(16, 16, 16))
    reads = [each for each in found if each.hazard is Hazard.OUT_OF_BOUNDS]
    assert len(reads) > 200
    assert all(each.occurrences % 256 == 0 for each in reads)


def test_printf_is_text_and_bounded(cpu: Runner) -> None:
    cpu.load_file("prints")
    printed = cpu.finish(SHAPE).printed
    assert printed.startswith("accepted: score 17,  1.50|text|ff|%|1099511627776\n")
    cpu.load_file("floods")
    assert len(cpu.finish(SHAPE).printed) == 4096


@pytest.mark.parametrize(
    ("name", "depends"),
    [
        ("naive", False),
        ("tile", False),
        ("atomics", False),  # in shared memory
        ("volatile_stores", False),
        ("tickets", True),
        ("buffer", True),
        ("reads_c", True),
    ],
)
def test_dependent_blocks_are_not_sampled(cpu: Runner, name: str, depends: bool) -> None:
    assert cpu.load_file(name).blocks_depend is depends
    result = cpu.run(SHAPE, blocks=(0,))
    assert isinstance(result, Fault) is depends


@pytest.mark.parametrize("name", ["recursion", "recursion_through_pointers"])
def test_recursion_is_refused(cpu: Runner, name: str) -> None:
    answer = cpu.refusal(name)
    assert "recursion" in answer.message and answer.at is not None and answer.instruction


def test_of_a_large_launch_some_blocks_are_watched(cpu: Runner) -> None:
    def found(body: str, *blocks: int) -> set[Hazard]:
        cpu.load(kernel(body, "__device__ int tickets;"))
        inputs = given(Shape(64, 40, 48)).model_copy(update={"blocks": blocks})  # 3 by 4 blocks
        request = Sanitize(launches=(inputs,), tools=tuple(Tool), seconds=60, sample_seconds=0.3)
        answer = cpu.device.sanitize(request)
        assert isinstance(answer, Sanitized) and not answer.products and not answer.stopped
        return {finding.hazard for finding in answer.findings}

    race = """__shared__ int x; if (blockIdx.x == 1 && blockIdx.y == 2) x = threadIdx.x;
        __syncthreads(); if (blockIdx.x == 9) C[0] = x;"""
    assert found(race, 3, 7) == {Hazard.RACE} and not found(race, 3, 8)
    depend = "atomicAdd(&tickets, 1); while (atomicAdd(&tickets, 0) < 9);"
    assert not found(race + depend, 7), "it is the first that is watched, and waits in vain"
    assert found(race.replace("== 1 && blockIdx.y == 2", "== 0") + depend, 7) == {Hazard.RACE}
    dirt = "__shared__ int y[2]; if (y[threadIdx.x & 1] == N) C[0] = N;"
    assert found(dirt, 7) == {Hazard.UNINITIALISED} and not found(dirt + depend, 7)
    assert not found('while (N) asm volatile("");', 7), "as far as it came"
    assert cpu.fault(Shape(16, 16, 16), seconds=0.2).cause == "time-limit", "and in earnest"
