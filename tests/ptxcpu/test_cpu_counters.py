"""The counters, compared with six published figures and with counts by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from harness.protocol.device import Count, MergeLoads
from harness.protocol.report import CodeLine, Counters
from problem.cases import Shape
from tests.ptxcpu.runner import KERNELS, Runner, line_of, quantities
from tests.requests import inputs_of
from tests.sources import kernel, named_parts

WIDTH32 = Shape(32, 32, 32)
COPIES = named_parts(KERNELS / "async_copies.cu.in")


@pytest.mark.parametrize(
    ("opcode", "requests", "wavefronts"),
    [("LDS", 2048, 2048), ("LDS.64", 1536, 1536), ("LDS.128", 1280, 1536)],
)
def test_loads_are_merged_as_in_the_machine_code(
    cpu: Runner, opcode: str, requests: int, wavefronts: int
) -> None:
    cpu.load_file("reference32_tile", block=(32, 32, 1))
    before = cpu.count_one_block(WIDTH32)
    code = tuple(CodeLine(line=line.line, opcodes={opcode: 1}) for line in before.lines)
    counters = cpu.device.merge_loads(MergeLoads(shape=WIDTH32, code=code))
    assert counters.shared_load_requests == requests
    assert counters.shared_load_wavefronts == wavefronts
    assert sum(line.shared_requests for line in counters.lines) == requests + 64
    assert counters.global_load_sectors == before.global_load_sectors


def test_lines_add_up(cpu: Runner) -> None:
    cpu.load_file("tile")
    counters = cpu.count(Shape(48, 40, 33))
    lines = counters.lines
    assert sum(x.global_sectors for x in lines) == (
        counters.global_load_sectors + counters.global_store_sectors
    )
    assert sum(x.shared_wavefronts for x in lines) == (
        counters.shared_load_wavefronts + counters.shared_store_wavefronts
    )
    assert sum(x.instructions for x in lines) == sum(counters.instructions.values())
    text = (KERNELS / "tile.cu").read_text().splitlines()
    costly = max(lines, key=lambda x: x.shared_wavefronts)
    assert "sum +=" in text[costly.line - 1]


def test_instructions_are_counted_by_threads(cpu: Runner) -> None:
    cpu.load_file("naive")
    shape = Shape(20, 24, 36)
    counters = cpu.count(shape)
    assert counters.instructions["fma.rn.f32"] == shape.M * shape.N * shape.K
    assert counters.instructions["st.global.f32"] == shape.M * shape.K
    assert counters.flop == shape.flop
    assert counters.divergent_branches > 0  # the ragged edge


def test_sampled_blocks(cpu: Runner) -> None:
    cpu.load_file("naive")
    whole, part = (cpu.count(Shape(64, 32, 64), blocks) for blocks in (16, 4))
    assert (whole.counted_blocks, part.counted_blocks, part.blocks) == (16, 4, 16)
    assert whole.global_load_sectors == 4 * part.global_load_sectors
    assert whole.flop_per_global_byte == pytest.approx(part.flop_per_global_byte)


@pytest.mark.parametrize(("stride", "ways"), [(1, 1), (2, 2), (4, 4), (32, 32), (33, 1)])
def test_bank_conflicts(cpu: Runner, stride: int, ways: int) -> None:
    cpu.load_file("stores_with_a_stride", block=(16, 2, 1))
    counters = cpu.count_one_block(Shape(stride, 1, 1))
    assert counters.shared_store_requests == 1
    assert counters.shared_store_wavefronts == ways
    assert counters.bank_conflicts == ways - 1


@pytest.mark.parametrize(
    ("words", "index", "wavefronts", "least"),
    [
        *((2, "2 * lane", 2, 2), (2, "4 * lane", 4, 2), (2, "lane % 16 * 2", 2, 2)),
        *((2, "lane / 2 * 2", 1, 1), (2, "lane / 4 * 4 + lane % 2 * 2", 1, 1)),
        *((4, "4 * lane", 4, 4), (4, "8 * lane", 8, 4), (4, "lane % 8 * 4", 4, 4)),
        *((4, "lane / 2 * 4", 2, 2), (4, "lane / 4 * 8 + lane % 2 * 4", 2, 2)),
    ],
)
def test_wide_accesses_take_as_many_passes_as_their_phases(
    cpu: Runner, words: int, index: str, wavefronts: int, least: int
) -> None:
    """64 bits take two half warps, 128 four quarters; two of them merge if lanes pair up."""
    values = ", ".join(["%1"] * words)
    store = f'asm volatile("st.shared.v{words}.f32 [%0], {{{values}}};" :: "r"(at), "f"(1.0f));'
    at = f"(unsigned)__cvta_generic_to_shared(s + {index})"
    body = f"__shared__ alignas(16) float s[1024]; int lane = threadIdx.x; unsigned at = {at};"
    cpu.load(kernel(f"{body}\n{store}"), block=(32, 1, 1))
    counters = cpu.count_one_block(Shape(1, 1, 1))
    assert counters.shared_store_wavefronts == wavefronts
    assert counters.bank_conflicts == wavefronts - least


def test_async_copies_count_as_the_hardware_counts_them(cpu: Runner) -> None:
    """Each pattern of addresses is on one line. A contains for each lane the addresses that it
    reads in B and writes."""
    patterns = json.loads((Path(__file__).parent / "async_copies.json").read_text())["patterns"]
    text = COPIES["a copy on each line that is added"]
    lines = {}
    for i, x in enumerate(patterns):
        filled = f"{'lane % 2 ? 0 : ' if x['zeros'] else ''}{x['bytes']}"
        text += f"from = A[{64 * i} + lane], to = A[{64 * i + 32} + lane];\n"
        text += f'COPY("{x["copy"]}", {x["bytes"]}, {filled})\n'
        lines[text.count("\n")] = x
    cpu.load(text + "}", block=(32, 1, 1))
    A = np.array([x["from"] + x["to"] for x in patterns], np.float32).reshape(1, -1)
    shape = Shape(1, A.size, 4)
    inputs = inputs_of(shape, A, np.zeros((shape.N, shape.K), np.float32))
    answer = cpu.device.count(Count(inputs=inputs, max_blocks=1, seconds=60))
    assert isinstance(answer, Counters), answer
    differing = [
        (*(lines[x.line][name] for name in ("copy", "bytes", "name", *HARDWARE)), quantities(x))
        for x in answer.lines
        if x.line in lines and quantities(x) != tuple(lines[x.line][name] for name in HARDWARE)
    ]
    assert differing == []
    assert answer.shared_load_requests == answer.global_store_requests == 0
    assert len(patterns) > 400


HARDWARE = ("sectors", "passes", "wavefronts", "fewest")


def test_data_that_controls_a_loop_is_computed(cpu: Runner) -> None:
    cpu.load_file("data_decide_a_loop", block=(32, 1, 1))
    counters = cpu.count_one_block(Shape(32, 32, 32))
    line = line_of("data_decide_a_loop", "sum += B[")
    assert [x.global_requests for x in counters.lines if x.line == line] == [7]


@pytest.mark.parametrize(("steps", "again"), [(4, 0), (64, 2 * 32)])
def test_sectors_leave_the_cache_while_a_warp_reads_others(
    cpu: Runner, steps: int, again: int
) -> None:
    """Two warps read the same 32 sectors in each step: each waits for all of them, and again after
    64 steps."""
    cpu.load_file("walks_and_returns", block=(64, 1, 1))
    lines = {x.line: x for x in cpu.count_one_block(Shape(steps, 256, 64)).lines}
    first, walk, returned = lines[4], lines[6], lines[7]
    assert first.global_new_sectors == first.global_sectors == 2 * 32
    assert walk.global_new_sectors == 2 * 32 * (steps - 1)
    assert walk.global_first_sectors == 32 * (steps - 1)
    assert returned.global_new_sectors == again
    assert returned.global_first_sectors == 0


def test_the_fewest_sectors_of_a_column(cpu: Runner) -> None:
    """A warp that reads 32 rows of A at one column accesses 32 sectors; 32 words fit into 4."""
    source = (KERNELS / "data_decide_a_loop.cu").read_text()
    cpu.load(source.replace("B[threadIdx.x + i]", "B[threadIdx.x * 32 + i]"), block=(32, 1, 1))
    counters = cpu.count_one_block(Shape(32, 32, 32))
    worst = max(counters.lines, key=lambda x: x.global_sectors)
    assert (worst.global_sectors, worst.global_min_sectors) == (7 * 32, 7 * 4)
    assert worst.global_passes == 7 * 32


def test_a_divergent_warp_issues_for_each_branch(cpu: Runner) -> None:
    cpu.load_file("diverges", block=(32, 1, 1))
    counters = cpu.count_one_block(Shape(16, 16, 16))
    loops = {line_of("diverges", text) for text in ("i < M", "i < N")}
    parted = [x for x in counters.lines if x.line in loops]
    assert counters.divergent_branches > 0
    assert parted
    for line in parted:
        assert line.instructions < 20 * line.warp_instructions


@pytest.mark.parametrize(("static", "sectors"), [("char before[1];", 32), ("int before[8];", 16)])
def test_dynamic_shared_memory_begins_as_in_ptxas(cpu: Runner, static: str, sectors: int) -> None:
    """It begins right after the static variables. At an offset of half a sector, a copy that
    bypasses L1 has two parts per sector, as an H100 counts it for 19, and not for 20."""
    cpu.load(COPIES["copies behind static variables"].replace("STATIC", static))
    counted = cpu.count(Shape(16, 16, 16))
    copy = next(line for line in counted.lines if line.copy_passes)
    assert copy.global_sectors == sectors
