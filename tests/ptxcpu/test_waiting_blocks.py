"""Blocks that wait for later ones. They run at the same time, as far as a GPU has room for them.

The findings follow PTX's memory model, and do not depend on the order in which the blocks run.
"""

import numpy as np
import pytest

from harness.protocol.report import Hazard
from problem.cases import Shape
from tests.ptxcpu.runner import KERNELS, Runner

BLOCKS = 16
SHAPE = Shape(64, 16, 64)

KERNEL = (KERNELS / "waiting_blocks.cu.in").read_text()
FENCE = "__threadfence();"


def source(body: str, before: str = FENCE, after: str = FENCE) -> str:
    return KERNEL.format(body=body, before=before, after=after)


EXCHANGE = """
    data[256 * block + thread] = 1000 * block + thread;
    meet(blocks);
    *c = data[256 * next + 255 - thread];
"""


@pytest.mark.parametrize("before", ("", FENCE))
@pytest.mark.parametrize("after", ("", FENCE))
def test_a_barrier_of_all_blocks_orders_them_by_its_fences(
    cpu: Runner, before: str, after: str
) -> None:
    cpu.load(source(EXCHANGE, before, after))
    output = cpu.finish(SHAPE).output.reshape(4, 16, 4, 16).transpose(0, 2, 1, 3).reshape(16, 256)
    block, thread = np.mgrid[:BLOCKS, :256]
    assert (output == 1000 * ((block + 1) % BLOCKS) + 255 - thread).all()
    races = {each.hazard for each in cpu.findings(SHAPE)}
    assert races == (set() if before and after else {Hazard.RACE})


@pytest.mark.parametrize("meets", [True, False])
def test_another_barrier_is_needed_before_data_are_replaced(cpu: Runner, meets: bool) -> None:
    again = "meet(2 * blocks);" if meets else "__syncthreads();"
    cpu.load(source(EXCHANGE + again + "data[256 * block + thread] = 7;"))
    assert {each.hazard for each in cpu.findings(SHAPE)} == (set() if meets else {Hazard.RACE})


@pytest.mark.parametrize("is_fenced", [True, False])
def test_order_through_another_block_needs_fences(cpu: Runner, is_fenced: bool) -> None:
    fence = FENCE if is_fenced else ""
    body = f"""
    if (thread == 0) {{
        data[block] = 5;
        {fence}
        atomicAdd(flags + block, 1);
        while (atomicAdd(flags + (block ^ 1), 0) < 1) {{}}
        atomicAdd(flags + (block ^ 1), 1);
    }}
    if (thread == 96) {{
        while (atomicAdd(flags + block, 0) < 2) {{}}
        {fence}
        tile[0] = data[block];
    }}
    __syncthreads();
    *c = tile[0];
    """
    cpu.load(source(body))
    assert (cpu.finish(SHAPE).output == 5).all()
    found = cpu.findings(SHAPE)
    assert {each.hazard for each in found} == (set() if is_fenced else {Hazard.RACE})
    assert all(each.other and each.at.block == each.other.block for each in found)


@pytest.mark.parametrize("barrier", ["__syncthreads();", ""])
def test_a_block_keeps_what_is_known_of_its_shared_memory(cpu: Runner, barrier: str) -> None:
    cpu.load(source(f"tile[thread] = thread; {barrier} meet(blocks); *c = tile[thread ^ 255];"))
    assert cpu.findings(SHAPE) == ()
    cpu.load(source(f"meet(blocks); tile[thread] = thread; {barrier} *c = tile[thread ^ 255];"))
    missing = set() if barrier else {Hazard.RACE, Hazard.UNINITIALISED}
    assert {each.hazard for each in cpu.findings(SHAPE)} == missing


def test_in_a_large_grid_blocks_wait_for_the_next(cpu: Runner) -> None:
    cpu.load(
        source("""
    if (thread == 0) {
        if (block % 2 == 0) while (!atomicAdd(flags + block + 1, 0)) {}
        __threadfence();
        atomicExch(flags + block, 1);
    }
    *c = 1;
    """)
    )
    shape = Shape(256, 16, 512)
    assert (cpu.finish(shape).output == 1).all()
    assert cpu.findings(shape) == ()


def test_waiting_blocks_are_counted(cpu: Runner) -> None:
    cpu.load(source(EXCHANGE))
    counters = cpu.count(SHAPE)
    assert counters.counted_blocks == BLOCKS
    assert counters.global_load_sectors >= BLOCKS * 256 // 8


@pytest.mark.parametrize(("rows", "fits"), [(256, True), (288, False)])
def test_the_capacity_of_a_gpu_limits_waiting_blocks(cpu: Runner, rows: int, fits: bool) -> None:
    """An H100 has room for 264 such blocks, if each has up to 128 registers a thread."""
    cpu.load(source("meet(blocks); *c = 1;"))
    shape = Shape(rows, 16, 256)
    if fits:
        assert (cpu.finish(shape).output == 1).all()
    else:
        assert cpu.fault(shape, seconds=1).cause == "time-limit"
