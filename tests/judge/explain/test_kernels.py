"""Kernels that are each slow for another reason: what is estimated, and what is said first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.judge.explain.explanation import Unit
from harness.judge.explain.rules import RULES, Evidence, advice
from tests.judge.explain.ladder import evidence_of_source

KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be said of one kernel.

    measured_ms: of a kernel of the same kind on an H100; none where nobody measured one.
    gain: the least and the most that the first finding may promise.
    """

    name: str
    busiest: Unit
    rule: str
    words: str
    gain: tuple[float, float]
    measured_ms: float | None = None


EXPECTED = (
    Expected("naive", Unit.L1, "read-again", "sum += A", (1.2, 2.0), 81.6),
    Expected("double_accumulator", Unit.SPECIAL, "fp64", "sum += (double)", (1.2, 1.6), 114),
    Expected("double_constant", Unit.SPECIAL, "fp64", "1.0 * A", (1.8, 3.0)),
    Expected("one_block_per_sm", Unit.LATENCY, "latency", "a[y][x] =|b[y][x] =", (3.0, 5.0), 235),
    Expected("static_shared_80_kb", Unit.LATENCY, "latency", "sum += A", (2.2, 3.5), 231),
    Expected("spills", Unit.DRAM, "spills", "sum[i][j] +=", (15.0, 40.0), 531),
    Expected("modulo_in_loop", Unit.ISSUE, "integer-division", "% N", (1.7, 2.6), 204),
    Expected("bank_conflicts_16_way", Unit.L1, "bank-conflicts", "sum +=", (2.0, 3.0)),
    Expected("divergent_halves", Unit.L1, "divergence", "if ((x + k) % 2)|sum +=", (1.3, 2.2)),
    Expected("local_array", Unit.L1, "spills", "sums[", (1.5, 2.2)),
    Expected("long_remainder", Unit.LATENCY, "integer-division", "n % N", (2.5, 5.0)),
    Expected("mma_3xtf32", Unit.ISSUE, "tensor-issue", "cvt.rna|mma.sync", (1.3, 2.5)),
)


def evidence_of_kernel(name: str) -> Evidence:
    return evidence_of_source((KERNELS / f"{name}.cu").read_text(encoding="utf-8"))


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected.name)
def test_a_slow_kernel_is_estimated_and_its_cause_named(expected: Expected) -> None:
    evidence = evidence_of_kernel(expected.name)
    assert evidence.work.busiest is expected.busiest
    estimated = evidence.work.total / evidence.gpu.clocks_per_ms
    if expected.measured_ms is not None:
        assert estimated == pytest.approx(expected.measured_ms, rel=0.3)
    first, *others = advice(evidence)
    assert first.rule == expected.rule
    assert expected.gain[0] <= first.gain <= expected.gain[1]
    assert first.line is not None
    text = (KERNELS / f"{expected.name}.cu").read_text(encoding="utf-8").splitlines()
    assert any(words in text[first.line - 1] for words in expected.words.split("|"))
    if expected.rule == "spills":
        assert not {each.rule for each in others} & {"overhead", "few-products-per-load"}


def test_shared_memory_that_is_not_needed_is_advised_against() -> None:
    (finding, *_) = advice(evidence_of_kernel("one_block_per_sm"))
    assert finding.remedy.startswith("drop shared memory") and finding.see is None
    assert "occupancy 12 %, limited by shared memory" in finding.message


def test_one_cause_on_one_line_is_one_finding() -> None:
    """Threads that read and store along columns: uncoalesced, and with bank conflicts."""
    evidence = evidence_of_kernel("indices_the_wrong_way_round")
    alone = {rule.name: advice(evidence, (rule,)) for rule in RULES}
    (uncoalesced,), (conflicts,) = alone["uncoalesced"], alone["bank-conflicts"]
    assert uncoalesced.line == conflicts.line == 8
    found = [each for each in advice(evidence) if each.line == 8]
    assert len(found) == 1 and found[0].remedy.startswith("swap the indices")
    assert found[0].gain > max(uncoalesced.gain, conflicts.gain)
    assert "sectors" in found[0].message and "wavefronts" in found[0].message
