"""Tests of thread block clusters: one kernel for each part of their semantics and each check."""

import numpy as np
import pytest

from harness.protocol.report import Array, Hazard, Tool, Unsupported
from problem.cases import Matrix, Shape
from tests.ptxcpu.cluster_kernels import KERNELS, RACES, SIZES, expected_places, kernel, places
from tests.ptxcpu.runner import Runner, inputs

ROW = Shape(16, 16, 64)
"""Four blocks along x."""

PLACES = Shape(33, 5, 70)
"""5 by 3 blocks, rounded up to whole clusters."""


def tiles(C: Matrix) -> list[Matrix]:
    """Return what each of the four blocks of ROW wrote, thread by thread."""
    return [C[:, 16 * b : 16 * b + 16].reshape(-1) for b in range(4)]


@pytest.mark.parametrize("cluster", SIZES, ids=str)
def test_special_registers(cpu: Runner, cluster: tuple[int, int, int]) -> None:
    cpu.load(places(cluster))
    assert np.array_equal(cpu.finish(PLACES).output, expected_places(PLACES, cluster))
    assert cpu.findings(PLACES) == ()


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(cpu: Runner, name: str) -> None:
    """Every thread gets the elements of A or B that the next block of its cluster loaded."""
    source, expected = KERNELS[name]
    cpu.load(source)
    C = cpu.finish(ROW).output
    for block, tile in enumerate(tiles(C)):
        assert np.array_equal(tile, expected(block, *inputs(ROW))), block
    assert cpu.findings(ROW) == ()


def test_sampled_blocks_run_with_their_whole_cluster(cpu: Runner) -> None:
    cpu.load(KERNELS["mapa.u64"][0])
    sampled = cpu.run(ROW, blocks=(1,))
    C = sampled.output  # type: ignore[union-attr]
    assert [bool(np.isfinite(tile).all()) for tile in tiles(C)] == [True, True, False, False]
    assert cpu.count(ROW, 1).counted_blocks == 2
    assert cpu.count(ROW).counted_blocks == 4


def test_counters_add_up(cpu: Runner) -> None:
    """A cluster of two has twice the counts of one block, in whichever block the words are."""
    cpu.load(KERNELS["mapa.u64"][0])
    half, whole = cpu.count(ROW, 2), cpu.count(ROW)
    assert whole.shared_load_requests == 2 * half.shared_load_requests == 4 * 8
    assert whole.shared_store_requests == 2 * half.shared_store_requests == 4 * 8
    assert whole.global_load_sectors == 2 * half.global_load_sectors == 4 * 32
    assert sum(line.global_first_sectors for line in whole.lines) == 4 * (32 + 32)
    assert sum(x.instructions for x in whole.lines) == sum(whole.instructions.values())


@pytest.mark.parametrize("name", RACES)
def test_an_unordered_access_across_blocks_is_a_race(cpu: Runner, name: str) -> None:
    source, words = RACES[name]
    cpu.load(source)
    finding = cpu.finding(ROW, Hazard.RACE)
    assert finding.tool is Tool.RACECHECK and words in finding.message, finding.message
    if name == "a write that no barrier orders":
        assert finding.at.block and finding.other and finding.other.block
        assert {finding.at.block[0], finding.other.block[0]} == {0, 1}


def test_an_access_outside_the_neighbours_shared_memory_is_found(cpu: Runner) -> None:
    body = """__shared__ float s[256];
        s[id] = 1;
        cluster.sync();
        float* other = cluster.map_shared_rank(s, rank ^ 1);
        value = other[id + 1];
        cluster.sync();"""
    cpu.load(kernel(body))
    finding = cpu.fault(ROW).finding
    assert finding is not None and finding.hazard is Hazard.OUT_OF_BOUNDS
    assert finding.array == Array.SHARED and finding.bytes_outside == 0
    assert "in block 0 of the cluster" in finding.message, finding.message
    assert cpu.finding(ROW, Hazard.OUT_OF_BOUNDS).at.line == finding.at.line


def test_an_uninitialised_read_from_the_neighbour_is_found(cpu: Runner) -> None:
    body = """__shared__ float s[256];
        if (rank == 0) s[id] = 1;
        cluster.sync();
        value = cluster.map_shared_rank(s, rank ^ 1)[id];
        cluster.sync();"""
    cpu.load(kernel(body))
    finding = cpu.finding(ROW, Hazard.UNINITIALISED)
    assert finding.at.block == (0, 0, 0) and finding.array == Array.SHARED


def test_shared_cta_does_not_reach_the_neighbour(cpu: Runner) -> None:
    cpu.load(KERNELS["ld.shared::cluster"][0].replace("ld.shared::cluster", "ld.shared::cta"))
    finding = cpu.fault(ROW).finding
    assert finding is not None and finding.hazard is Hazard.OUT_OF_BOUNDS
    assert "does not reach" in finding.message, finding.message
    assert cpu.finding(ROW, Hazard.OUT_OF_BOUNDS).message == finding.message


def test_threads_that_return_are_not_waited_for(cpu: Runner) -> None:
    cpu.load(kernel("if (id >= 100 && rank == 1) return; arrive(); wait(); value = 2;"))
    assert (tiles(cpu.finish(ROW).output)[0] == 2).all()
    assert cpu.findings(ROW) == ()


def test_a_deadlock_across_blocks_is_found(cpu: Runner) -> None:
    cpu.load(kernel('if (rank == 0) { arrive(); wait(); } else asm volatile("bar.sync 1, 512;");'))
    fault = cpu.fault(ROW)
    assert fault.cause == "deadlock" and "512 threads" in fault.message
    assert cpu.finding(ROW, Hazard.DEADLOCK).tool is Tool.SYNCCHECK


def test_a_warp_divergent_at_an_aligned_arrive_is_found(cpu: Runner) -> None:
    aligned = 'asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");'
    source = kernel(f"if (id & 1) {{ {aligned} value = 1; }} else {{ {aligned} }} wait();")
    cpu.load(source)
    finding = cpu.finding(ROW, Hazard.DIVERGENT_BARRIER)
    assert finding.tool is Tool.SYNCCHECK
    cpu.load(source.replace(".aligned", ""))
    assert cpu.findings(ROW) == ()


MISUSES = {
    "arrives twice": ("arrive(); arrive(); wait();", "a second time"),
    "waits without having arrived": ("wait();", "without having arrived"),
    "mapa of a rank that is none": (
        'asm("mapa.shared::cluster.u32 %0, %1, 7;" : "=r"(rank) : "r"(0)); value = rank;',
        "operand",
    ),
    "mapa of a global address": (
        'long long d; asm("mapa.u64 %0, %1, 1;" : "=l"(d) : "l"(A)); value = d;',
        "operand",
    ),
    "getctarank of a global address": (
        'asm("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(A)); value = rank;',
        "operand",
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_a_misused_instruction_traps(cpu: Runner, name: str) -> None:
    body, words = MISUSES[name]
    cpu.load(kernel(body))
    fault = cpu.fault(ROW)
    assert fault.cause == "trap" and words in fault.message, fault


def test_a_cluster_that_is_too_large_is_refused(cpu: Runner) -> None:
    ptx = """.version 8.0
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 A) .reqnctapercluster 16, 1, 1 { ret; }"""
    answer = cpu.device.load_ptx(ptx, "k")
    assert isinstance(answer, Unsupported) and "1 to 8 blocks" in answer.message
