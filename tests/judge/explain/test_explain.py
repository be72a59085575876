"""Tests of explanations of the solutions, without a GPU."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.compiling.occupancy import WARP
from harness.judge.explain.compare import MIN_CHANGE, compare
from harness.judge.explain.examination import from_report
from harness.judge.explain.explain import explain
from harness.judge.explain.explanation import Explanation, Unit
from harness.judge.explain.gpu import GPUS, H100, SUSTAINED
from harness.judge.explain.latency import iteration
from harness.judge.explain.workload import spills_to
from harness.judge.stages.count import count_on
from harness.protocol.device import Count
from harness.protocol.report import CodeLoop, Counters, Producer, Report, Wait
from harness.protocol.request import Fault
from problem.cases import RANKED, Shape
from problem.launcher import LaunchLine
from problem.problem import MATRIX_MULTIPLICATION as PROBLEM
from tests.compiled import compiled
from tests.judge.explain.solutions import (
    KERNELS,
    SOLUTIONS,
    device_with,
    evidence_of,
    examined,
    recorded,
)

FASTEST = "36_wgmma_one_accumulator"


def explained(solution: str) -> Explanation:
    return explain(examined(recorded(solution)))


def line_of(path: Path, words: str) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(i for i, text in enumerate(lines, 1) if words in text)


def test_the_naive_kernel_waits_for_the_l1_cache() -> None:
    explanation = explain(examined(evidence_of("01_naive")))
    assert explanation.units[0].unit is Unit.L1
    product = line_of(SOLUTIONS / "01_naive.cu", "sum += A[")
    line = next(each for each in explanation.lines if each.line == product)
    # Of two requests one touches 16 rows of A and the other two columns of B.
    assert line.sectors_per_request == pytest.approx(8.5)
    assert (line.l1_share or 0) > 0.99 and (line.cost or 0) > 0.9
    assert sum(each.cost or 0 for each in explanation.lines) == pytest.approx(1)
    assert {finding.rule for finding in explanation.findings} >= {"read-again", "uncoalesced"}
    assert all(finding.line == product for finding in explanation.findings)


def test_block_figures_are_exact_and_roofs_above_measured_speeds() -> None:
    """The measured speeds are useful operations: 412 GFLOP in 50.1 and in 423 ms on an H100."""
    for solution, ms in (("01_naive", 423.0), ("02_shared_tile", 50.1)):
        for roof in explained(solution).roofs:
            assert roof.tflops > 412.3 / ms
    explanation = explained("02_shared_tile")
    assert explanation.block_bytes == 4 * (2 * 16 * 6144 + 16 * 16)
    assert explanation.block_flop == 2 * 16 * 16 * 6144
    assert explanation.waves == pytest.approx(131_072 / (8 * 132))


def test_blocks_that_share_work_have_no_figures_per_tile() -> None:
    """Solution 36 declares a tile of 4096x4, and was counted at 512x6144x512.

    It makes one product of FP16 and two of INT8 in parts of 144 columns. At that size more of
    these columns lie outside of C than at the ranked size.
    """
    evidence = recorded(FASTEST)
    assert evidence.facts.launch.tile_rows > evidence.counters.shape.M
    found = explain(examined(evidence, blocks_depend=True))
    assert found.block_bytes is None and found.block_flop is None and found.tail == 0
    assert found.notes[0].startswith("Counted on a whole launch of 512×6144×512")
    roof = next(each for each in found.roofs if each.name.startswith("tensor cores"))
    assert roof.name == "tensor cores (1 product of FP16, 2 products of INT8)"
    one_of_fp16_alone = H100.tflops(H100.tensor_macs("FP16") or 0)
    assert roof.tflops == pytest.approx(one_of_fp16_alone / 2, rel=0.025)
    dearest = max(found.lines, key=lambda line: line.cost or 0)
    assert dearest.kinds.get("tensor core")
    tensor = next(each for each in found.units if each.unit is Unit.TENSOR)
    assert tensor.ms == pytest.approx(RANKED.shape.flop / roof.tflops / 1e9 / SUSTAINED)


def test_without_counters_the_machine_code_is_explained() -> None:
    evidence = recorded("02_shared_tile")
    found = explain(examined(evidence, counters=None, note="no counters"))
    assert found.notes == ("no counters",) and not found.findings and not found.units
    assert found.mix and found.lines and found.occupancy.blocks == 8


def test_shared_work_without_counters_is_estimated_from_the_loop() -> None:
    """Solutions 19 and 20, which would take this long without Strassen, are such kernels."""
    evidence = recorded("17_split_tail")
    found = explain(examined(evidence, counters=None, blocks_depend=True))
    assert found.estimated_ms == pytest.approx(7.3, rel=0.1)
    assert found.units[0].unit is Unit.ISSUE and not found.findings
    assert found.notes == (
        "Estimated from the machine code of its loop alone, as if that computed all products of "
        "the ordinary algorithm and its loads took no time.",
    )


def test_counters_must_fit_the_measured_time() -> None:
    """Solution 36 multiplies in FP32 at the size that its grading drew.

    That would be 24 ms of work at the ranked size, where it takes 1.3 ms.
    """
    text = (SOLUTIONS.parent / "reports" / "h200" / "02_shared_tile.json").read_text()
    facts = from_report(Report.model_validate_json(text))
    assert facts is not None
    assert explain(facts).findings and not explain(facts).notes
    assert explain(facts).gpu == facts.device.name and not explain(facts).assumed
    assert explain(facts, GPUS[-1]).gpu == GPUS[-1].name and explain(facts, GPUS[-1]).assumed
    busiest = explain(facts).units[0].ms
    assert explain(replace(facts, measured_ms=busiest / 1.05)).findings
    unfit = explain(replace(facts, measured_ms=busiest / 1.15))
    assert not (unfit.findings or unfit.units or unfit.roofs or unfit.estimated_ms)
    assert "do not hold at 8192×6144×4096" in unfit.notes[0]
    assert all(line.l1_share is None for line in unfit.lines)


def test_a_smaller_size_is_counted_for_slow_kernels() -> None:
    source = (KERNELS / "naive.cu").read_text(encoding="utf-8")
    device, ready = device_with(compiled(source))

    def ask(request: Any) -> Any:
        if isinstance(request, Count) and request.inputs.shape == RANKED.shape:
            return Fault(cause="time-limit", message="it did not end within 30 s")
        return device.answer(request)

    def counted(chosen: Shape | None) -> object:
        slow: Any = SimpleNamespace(ask=ask)
        return count_on(
            slow, LaunchLine(), ready, problem=PROBLEM, chosen=chosen, seed=1, seconds=30
        )

    found = counted(None)
    assert isinstance(found, Counters) and found.shape == PROBLEM.counted_shapes[0]
    assert isinstance(counted(RANKED.shape), Fault)


def test_a_miss_of_either_load_delays_the_warp() -> None:
    """A warp needs the results of both loads, so either miss delays it."""
    waits = (Wait(Producer.GLOBAL, 0, 2, 7), Wait(Producer.GLOBAL, 1, 3, 8))
    loop = CodeLoop(first_line=7, last_line=8, opcodes={"LDG": 2, "FFMA": 2}, waits=waits)

    def clocks(first: float, second: float) -> float:
        return iteration(loop, False, {7: first, 8: second}, memory=1000).clocks

    assert clocks(0.25, 0.5) == clocks(0.75, 0.0) > clocks(0.5, 0.0)
    assert clocks(0.75, 0.75) == clocks(1.0, 0.0)


def test_a_comparison_names_the_largest_changes_first() -> None:
    naive, tiled = explained("01_naive"), explained("02_shared_tile")
    assert naive.estimated_ms is not None and tiled.estimated_ms is not None
    times = f"{naive.estimated_ms / tiled.estimated_ms:.2f}×"
    for new, old, verdict in (
        (tiled, naive, f"should be {times} as fast"),
        (naive, tiled, f"should take {times} as long"),
    ):
        found = compare(new, old)
        assert found.why.startswith(f"{new.name} {verdict}")
        changes = [abs(each.after_ms - each.before_ms) for each in found.units]
        assert len(changes) > 1 and changes == sorted(changes, reverse=True)
        assert changes[-1] >= MIN_CHANGE * naive.estimated_ms
    same = compare(naive, naive)
    assert "should be equally fast" in same.why and not same.units
    unknown = naive.model_copy(update={"name": "y", "estimated_ms": None})
    for pair in ((naive, unknown), (unknown, naive)):
        assert compare(*pair).why.startswith("y could not be counted")


def test_spills_go_to_the_nearest_memory_with_room() -> None:
    facts = recorded("02_shared_tile").facts
    threads = facts.occupancy.warps * WARP
    occupied = facts.occupancy.blocks * facts.resources.shared_bytes
    most_in_l1 = (H100.l1_bytes - occupied) // threads
    most_in_l2 = H100.l2_bytes // (threads * H100.multiprocessors)

    def home(stack: int) -> Unit:
        resources = facts.resources.model_copy(update={"stack_bytes": stack})
        return spills_to(facts.model_copy(update={"resources": resources}), H100)

    assert occupied and home(most_in_l1) is Unit.L1
    assert home(most_in_l1 + 1) is home(most_in_l2) is Unit.L2
    assert home(most_in_l2 + 1) is Unit.DRAM
