"""Every rule has a kernel that it speaks of, and one of which it must not."""

import csv
import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from harness.judge.explain.rules import RULES, advice
from harness.protocol.report import Report
from tests.judge.explain.solutions import RECORDED, SOLUTIONS, evidence_of_source, recorded
from tests.judge.explain.test_kernels import evidence_of_kernel
from tests.judge.explain.test_recorded import EXPLAINED

REPORTS = SOLUTIONS.parent / "reports"


def rows(name: str) -> list[list[str]]:
    """Return the rows of a table without its heading."""
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as table:
        return [*csv.reader(table)][1:]


PROMISES = rows("promises.csv")
"""A kernel, one that follows the advice on it, and the rule that gives this advice."""

SILENT = {rule: kernels for rule, *kernels in rows("silent.csv")}
"""By rule, kernels of which it must not speak."""


def rules_that_speak_of(solution: str) -> set[str]:
    return {each.rule for rule in RULES for each in advice(recorded(solution), (rule,))}


@pytest.mark.parametrize("rule", [*SILENT])
def test_kernels_that_do_not(rule: str) -> None:
    for solution in SILENT[rule]:
        assert rule not in rules_that_speak_of(solution), solution


def test_a_value_shared_by_a_row_of_threads_is_coalesced() -> None:
    """A warp lies over two rows of the block: two sectors, where both values would fit into one."""
    evidence = evidence_of_kernel("rows_share_a")
    shared = max(evidence.counters.lines, key=lambda each: each.global_requests)
    assert shared.global_sectors >= 2 * shared.global_min_sectors
    assert "uncoalesced" not in {each.rule for rule in RULES for each in advice(evidence, (rule,))}


def test_a_division_by_a_constant_is_not_slow() -> None:
    """It is a multiplication, of which the upper half is kept."""
    evidence = recorded("02_shared_tile")
    opcodes = {**evidence.loop.opcodes, "IMAD.HI.U32": 40}
    loop = evidence.loop.model_copy(update={"opcodes": opcodes})
    divides = replace(evidence, facts=evidence.facts.model_copy(update={"loops": (loop,)}))
    assert "integer-division" not in {each.rule for each in advice(divides)}


def test_a_launch_line_that_is_missing_is_the_first_finding() -> None:
    source = (SOLUTIONS / "07_block_tile_1d.cu").read_text(encoding="utf-8")
    evidence = evidence_of_source(source.replace("// solve: tile=64x64", ""))
    first = advice(evidence)[0]
    assert first.rule == "needless-products" and "16 multiply-adds for each" in first.message
    assert first.gain > 8


def test_every_rule_is_tried_both_ways() -> None:
    known = json.loads(EXPLAINED.read_text(encoding="utf-8"))
    told = {path.removeprefix("/gains/") for each in known.values() for path in each}
    told.add("needless-products")
    names = {rule.name for rule in RULES}
    assert names <= told and names == SILENT.keys()


@pytest.mark.parametrize(("before", "after", "rule"), PROMISES)
def test_a_rule_promises_what_the_named_file_gains(before: str, after: str, rule: str) -> None:
    """Within 30 % of what the two files took on an H100."""
    chosen = tuple(each for each in RULES if each.name == rule)
    (found,) = advice(recorded(before), chosen)
    assert found.see is not None and after in found.see
    assert found.gain == pytest.approx(measured(before) / measured(after), rel=0.3)


def measured(solution: str) -> float:
    """Return the milliseconds that a solution took on an H100."""
    (path,) = REPORTS.glob(f"*/{solution}.json")
    report = Report.model_validate_json(path.read_bytes())
    return report.score.kernel_ms


@pytest.mark.parametrize("solution", sorted(path.stem for path in RECORDED.glob("*.jsonl")))
def test_the_time_of_a_solution_is_estimated(solution: str) -> None:
    assert abs(error(solution)) <= 0.3


def test_the_typical_estimate_of_a_solution_is_close() -> None:
    solutions = [path.stem for path in RECORDED.glob("*.jsonl")]
    assert statistics.median(abs(error(each)) for each in solutions) <= 0.1


def error(solution: str) -> float:
    """Return by how much the estimate of a solution is off."""
    evidence = recorded(solution)
    return evidence.work.total / evidence.gpu.clocks_per_ms / measured(solution) - 1
