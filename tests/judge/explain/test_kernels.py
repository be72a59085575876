"""Tests of estimates and first findings, on kernels that are each slow for another reason."""

import csv
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from harness.judge.explain.evidence import Evidence
from harness.judge.explain.gpu import gpu_named
from harness.judge.explain.rules import RULES, advice
from lab.commands.measure import Measurements, agrees
from tests.judge.explain.solutions import KERNELS, evidence_of_source, recorded


class Expected(NamedTuple):
    """The expected explanation of one kernel: a row of expected.csv.

    Where several words or rules are possible, bars separate them.
    """

    name: str
    busiest: str
    rule: str
    """The rule of the first finding."""
    words: str
    """Words of the line of the first finding."""
    least: str
    """The least that the first finding may promise, as a factor on the speed."""
    most: str
    says: str
    """Words of the first finding."""
    excluded: str
    """Rules whose findings follow from the first finding, or contradict it."""


with (KERNELS / "expected.csv").open(encoding="utf-8", newline="") as table:
    EXPECTED = [Expected(*row) for row in [*csv.reader(table)][1:]]

MEASURED = Measurements.model_validate_json((KERNELS / "measured.json").read_bytes()).kernels


def evidence_of_kernel(name: str) -> Evidence:
    return evidence_of_source((KERNELS / f"{name}.cu").read_text(encoding="utf-8"))


FIRST = {each.rule: each.name for each in reversed(EXPECTED) if each.name != "large_unroll"}
"""The first kernel for each rule, which is counted quickly. nox -s architectures counts the others,
which takes seconds for each and half a minute for large_unroll; here their counts are recorded."""

ON_SOLUTIONS = {"read-again", "bank-conflicts", "few-products-per-load", "overhead", "mma-sync"}
"""Rules that test_rules.py tries on solutions whose counters were recorded."""

CHOSEN = [
    *(pytest.param(each, recorded, id=f"{each.name}, recorded") for each in EXPECTED),
    *(
        pytest.param(
            each,
            evidence_of_kernel,
            id=each.name,
            marks=[]
            if FIRST.get(each.rule) == each.name and each.rule not in ON_SOLUTIONS
            else [pytest.mark.architectures],
        )
        for each in EXPECTED
    ),
]


@pytest.mark.parametrize(("expected", "evidence_of"), CHOSEN)
def test_a_slow_kernel_is_estimated_and_its_cause_named(
    expected: Expected, evidence_of: Callable[[str], Evidence]
) -> None:
    evidence = evidence_of(expected.name)
    assert evidence.work.busiest == expected.busiest
    there = replace(evidence, gpu=gpu_named("H200"))
    estimated = there.work.total / there.gpu.clocks_per_ms
    assert estimated == pytest.approx(MEASURED[expected.name].ms, rel=0.3)
    first, *others = advice(evidence)
    assert first.rule == expected.rule
    assert float(expected.least) <= first.gain <= float(expected.most)
    if expected.words:
        text = (KERNELS / f"{expected.name}.cu").read_text(encoding="utf-8").splitlines()
        assert any(words in text[first.line - 1] for words in expected.words.split("|"))
    assert expected.says in first.message
    assert {*expected.excluded.split("|")}.isdisjoint(each.rule for each in others)


def test_the_typical_estimate_is_close() -> None:
    errors = []
    for each in EXPECTED:
        there = replace(recorded(each.name), gpu=gpu_named("H200"))
        estimated = there.work.total / there.gpu.clocks_per_ms
        errors.append(abs(estimated / MEASURED[each.name].ms - 1))
    assert statistics.median(errors) <= 0.1


def test_first_findings_agree_with_hardware_counters() -> None:
    """A finding agrees if it fits the busiest unit or longest wait that `ncu` saw on an H200."""
    found = [agrees(advice(recorded(each.name))[0].rule, MEASURED[each.name]) for each in EXPECTED]
    known = [each for each in found if each is not None]
    assert len(known) >= 39 and sum(known) >= 0.9 * len(known)


def test_a_store_on_the_line_of_the_loop_hides_nothing() -> None:
    text = (KERNELS / "naive.cu").read_text(encoding="utf-8")
    (finding, *_) = advice(evidence_of_source(text.replace(";\n    C[", "; C[")))
    assert finding.rule == "read-again" and "each sector 8 times" in finding.message


def test_one_cause_on_one_line_is_one_finding() -> None:
    """Threads read and store along columns, so accesses are uncoalesced with bank conflicts."""
    evidence = evidence_of_kernel("indices_the_wrong_way_round")
    alone = {rule.name: advice(evidence, (rule,)) for rule in RULES}
    (uncoalesced,), (conflicts,) = alone["uncoalesced"], alone["bank-conflicts"]
    assert uncoalesced.line == conflicts.line == 8
    found = [each for each in advice(evidence) if each.line == 8]
    assert len(found) == 1 and found[0].remedy.startswith("swap the indices")
    assert found[0].cost == pytest.approx(uncoalesced.cost + conflicts.cost, rel=0.05)
    assert "sectors" in found[0].message and "wavefronts" in found[0].message
