"""Tests of estimates and first findings, on kernels that are each slow for another reason."""

import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.judge.explain.evidence import Evidence
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import gpu_named
from harness.judge.explain.rules import RULES, advice
from lab.commands.measure import Measurements, agrees
from problem.cases import RANKED
from tests.judge.explain.solutions import evidence_of_source

KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected explanation of one kernel.

    gain: the least and the most that the first finding may promise.
    """

    name: str
    busiest: Unit
    rule: str
    words: str
    gain: tuple[float, float]


EXPECTED = (
    Expected("read_only_path", Unit.LATENCY, "read-again", "__ldg", (1.2, 2.0)),
    Expected("naive", Unit.L1, "read-again", "sum += A", (1.2, 2.0)),
    Expected("double_accumulator", Unit.SPECIAL, "fp64", "sum += (double)", (1.2, 1.6)),
    Expected("double_constant", Unit.SPECIAL, "fp64", "1.0 * A", (1.8, 3.0)),
    Expected("one_block_per_sm", Unit.LATENCY, "latency", "a[y][x] =|b[y][x] =", (3.0, 5.0)),
    Expected("static_shared_80_kb", Unit.LATENCY, "latency", "sum += A", (2.2, 3.5)),
    Expected("local_array", Unit.LATENCY, "spills", "sums[", (2.5, 4.5)),
    Expected("spills", Unit.DRAM, "spills", "sum[i][j] +=", (10.0, 40.0)),
    Expected("long_remainder", Unit.LATENCY, "integer-division", "n % N", (2.5, 5.0)),
    Expected("modulo_in_loop", Unit.ISSUE, "integer-division", "% N", (1.7, 2.6)),
    Expected("bank_conflicts_16_way", Unit.L1, "bank-conflicts", "sum +=", (2.0, 3.0)),
    Expected("fence_every_step", Unit.L1, "fences", "__threadfence_block", (1.7, 2.7)),
    Expected("divergent_halves", Unit.L1, "fences", "__threadfence_block", (1.3, 2.2)),
    Expected("mma_3xtf32", Unit.ISSUE, "tensor-issue", "cvt.rna|mma.sync", (1.3, 2.5)),
    Expected("special_function", Unit.SPECIAL, "special-functions", "__cosf", (1.4, 2.2)),
    Expected("stored_every_step", Unit.L2, "stores", "__stcg", (1.7, 2.5)),
    Expected("barrier_every_step", Unit.LATENCY, "latency", "if (x == 0)", (1.5, 2.5)),
    Expected("compensated_sum", Unit.ISSUE, "overhead", "for (int k", (1.2, 1.6)),
    Expected("buffers_that_wait", Unit.L1, "few-products-per-load", "float4 p", (1.1, 1.6)),
    Expected("not_unrolled", Unit.L1, "few-products-per-load", "sum[i][j]", (1.3, 2.0)),
    Expected("four_outputs", Unit.L1, "few-products-per-load", "sum[i][j]", (2.0, 3.2)),
    Expected("shuffled", Unit.L1, "few-products-per-load", "__shfl_sync", (1.3, 2.2)),
    Expected("scattered_blocks", Unit.L1, "few-products-per-load", "sum +=", (2.4, 3.6)),
    Expected("past_l1", Unit.LATENCY, "read-again", "__ldcg", (1.3, 3.0)),
    Expected("cp_async_pipeline", Unit.ISSUE, "few-products-per-load", "float4 p", (1.1, 1.6)),
    Expected("scratch_in_global_memory", Unit.L1, "read-again", "sum += a", (1.1, 1.7)),
    Expected("vectors_or_not", Unit.L1, "few-products-per-load", "float4 p", (1.1, 1.6)),
    Expected("atomic_every_tile", Unit.L1, "few-products-per-load", "sum += a", (2.2, 3.4)),
    Expected("atomics_in_shared_memory", Unit.L1, "few-products-per-load", "sum +=", (2.2, 3.6)),
    Expected("reduced_by_shuffles", Unit.LATENCY, "read-again", "A[(top + r)|B[n * K", (1.8, 3.5)),
    Expected("large_unroll", Unit.FETCH, "large-loop", "sum[i][j] +=", (1.2, 1.8)),
    Expected("columns_of_a_past_l1", Unit.L1, "read-again", "__ldcg", (1.2, 2.5)),
    Expected("wmma_3xtf32", Unit.LATENCY, "mma-sync", "", (1.1, 1.6)),
    Expected("two_barriers_every_four", Unit.L1, "few-products-per-load", "sum[i][j]", (1.8, 3.0)),
    Expected("bounds_in_every_step", Unit.L1, "few-products-per-load", "n + k < N", (2.2, 3.6)),
    Expected("transposed_with_conflicts", Unit.L1, "bank-conflicts", "sum[i][j]", (1.4, 2.3)),
    Expected("halfwords_in_shared_memory", Unit.L1, "few-products-per-load", ".low", (2.0, 3.5)),
    Expected("one_thread_loads", Unit.L1, "divergence", "if (x == 0)|a[y][k] =", (2.0, 3.2)),
    Expected("divergent_loops", Unit.L1, "divergence", "sum +=", (1.4, 2.2)),
    Expected("phases", Unit.LATENCY, "latency", "a[i / 64]|b[i / 64]", (1.3, 2.4)),
)

SAYS = {
    "stored_every_step": f"stored or changed {RANKED.shape.N} times",
    "special_function": "(MUFU.COS)",
    "one_thread_loads": "2 of a warp's 32 threads",
    "local_array": "elements of a local array",
    "read_only_path": "each sector 8 times",
    "fence_every_step": "16 of the loop's",
}
"""Words of the first findings."""

FOLLOWING = {
    "one_block_per_sm": {"waits", "few-products-per-load"},
    "one_thread_loads": {"few-products-per-load"},
    "double_accumulator": {"special-functions"},
    "modulo_in_loop": {"overhead"},
    "local_array": {"latency", "few-products-per-load"},
    "spills": {"overhead", "few-products-per-load"},
}
"""Rules whose findings follow from the first finding, or contradict it."""

MEASURED = Measurements.model_validate_json((KERNELS / "measured.json").read_bytes()).kernels


def evidence_of_kernel(name: str) -> Evidence:
    return evidence_of_source((KERNELS / f"{name}.cu").read_text(encoding="utf-8"))


FIRST = {each.rule: each.name for each in reversed(EXPECTED) if each.name != "large_unroll"}
"""The first kernel for each rule, which is counted quickly. nox -s architectures tests the others:
to count the accesses of a kernel takes seconds, and half a minute for large_unroll."""

ON_SOLUTIONS = {"read-again", "bank-conflicts", "few-products-per-load", "overhead", "mma-sync"}
"""Rules that test_rules.py tries on solutions whose counters were recorded."""

CHOSEN = [
    pytest.param(
        each,
        id=each.name,
        marks=[]
        if FIRST.get(each.rule) == each.name and each.rule not in ON_SOLUTIONS
        else [pytest.mark.architectures],
    )
    for each in EXPECTED
]


@pytest.mark.parametrize("expected", CHOSEN)
def test_a_slow_kernel_is_estimated_and_its_cause_named(expected: Expected) -> None:
    evidence = evidence_of_kernel(expected.name)
    assert evidence.work.busiest is expected.busiest
    there = replace(evidence, gpu=gpu_named("H200"))
    estimated = there.work.total / there.gpu.clocks_per_ms
    assert estimated == pytest.approx(MEASURED[expected.name].ms, rel=0.3)
    first, *others = advice(evidence)
    assert first.rule == expected.rule
    assert expected.gain[0] <= first.gain <= expected.gain[1]
    if expected.words:
        text = (KERNELS / f"{expected.name}.cu").read_text(encoding="utf-8").splitlines()
        assert any(words in text[first.line - 1] for words in expected.words.split("|"))
    assert SAYS.get(expected.name, "") in first.message
    assert FOLLOWING.get(expected.name, set()).isdisjoint(each.rule for each in others)


@pytest.mark.architectures
def test_the_typical_estimate_is_close() -> None:
    errors = []
    for each in EXPECTED:
        there = replace(evidence_of_kernel(each.name), gpu=gpu_named("H200"))
        estimated = there.work.total / there.gpu.clocks_per_ms
        errors.append(abs(estimated / MEASURED[each.name].ms - 1))
    assert statistics.median(errors) <= 0.1


@pytest.mark.architectures
def test_first_findings_agree_with_hardware_counters() -> None:
    """A finding agrees if it fits the busiest unit or longest wait that `ncu` saw on an H200."""
    found = [
        agrees(advice(evidence_of_kernel(each.name))[0].rule, MEASURED[each.name])
        for each in EXPECTED
    ]
    known = [each for each in found if each is not None]
    assert len(known) >= 39 and sum(known) >= 0.9 * len(known)


@pytest.mark.architectures
def test_a_launch_of_few_blocks_has_few_warps() -> None:
    (finding, *_) = advice(evidence_of_kernel("phases"))
    assert finding.message.startswith("8 warps on a multiprocessor (occupancy 12 %")
    assert finding.remedy.startswith("launch more blocks")


@pytest.mark.architectures
def test_sectors_that_left_l1_are_read_from_l2_again() -> None:
    """Each block of reduced_by_shuffles goes through its part of A and B more than once."""
    evidence = evidence_of_kernel("reduced_by_shuffles")
    first = sum(line.global_first_sectors for line in evidence.counters.lines)
    assert evidence.l2_sectors > 1.9 * first


def test_unneeded_shared_memory_should_be_dropped() -> None:
    (finding, *_) = advice(evidence_of_kernel("one_block_per_sm"))
    assert finding.remedy.startswith("drop shared memory") and finding.see is None
    assert "occupancy 12 %, limited by shared memory" in finding.message


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
