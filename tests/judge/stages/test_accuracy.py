"""A full grading grades accuracy at a small size, on any device."""

import numpy as np

from harness.judge.grading import Failure
from harness.judge.stages.accuracy import add, grade_accuracy, graded, sentence
from harness.protocol.report import RuleViolation, RuntimeFault, Stage, TimeLimit
from harness.protocol.request import Fault
from problem.accuracy import INPUTS, SMALL_SHAPE, Errors
from problem.cases import RANKED, Case, Matrix
from tests.judge.stages.fakes import FakeDevice, grading, on_cpu, outcome_of


def tf32(A: Matrix, B: Matrix) -> Matrix:
    short = [(each.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for each in (A, B)]
    return short[0] @ short[1]


def test_a_kernel_as_accurate_as_fp32_has_grade_a() -> None:
    made = grading(on_cpu(FakeDevice()))
    grade_accuracy(made)
    (at,) = made.accuracy.sizes
    assert (made.accuracy.grade, at.shape, at.baseline) == ("A", SMALL_SHAPE, "plain FP32 sums")
    assert [each.inputs for each in at.results] == [*INPUTS]
    assert sentence(made.accuracy) == "accuracy A (componentwise, as FP32) at 72×1024×40"
    made = grading(on_cpu(FakeDevice(multiply=tf32)))
    grade_accuracy(made)
    assert made.accuracy.grade == "C" and "off by" in sentence(made.accuracy)


def test_the_grade_is_the_worst_of_all_sizes() -> None:
    made = grading(on_cpu(FakeDevice()))
    fine, coarse = Errors(0, 0, 0), Errors(1, 1, 1)
    for found, expected in ((fine, "A"), (coarse, "C"), (fine, "C")):
        add(made, RANKED.shape, "cuBLAS", [graded("uniform", RANKED.shape, found, fine)])
        assert made.accuracy is not None and made.accuracy.grade == expected
    worst = (("uniform", coarse), ("integers", Errors(2, 2, 2)))
    results = [graded(inputs, RANKED.shape, found, fine) for inputs, found in worst]
    add(made, RANKED.shape, "cuBLAS", results)
    assert made.accuracy is not None and len(made.accuracy.sizes) == 4
    assert sentence(made.accuracy).endswith('; off by 2.0e+00 on "integers"')


def test_only_full_gradings_of_correct_kernels_have_a_grade() -> None:
    quick, failed = grading(on_cpu(FakeDevice()), quick=True), grading(on_cpu(FakeDevice()))
    wrong = RuntimeFault(stage=Stage.VERIFY, message="")
    failed.failure = Failure(Case(SMALL_SHAPE), wrong)
    for made in (quick, failed):
        grade_accuracy(made)
        assert made.accuracy is None


def test_a_fault_or_a_changed_input_ends_the_grading() -> None:
    fault = Fault(cause="time-limit", message="no end")
    made = grading(on_cpu(FakeDevice(run=lambda _: fault)))
    assert isinstance(outcome_of(grade_accuracy, made), TimeLimit)
    made = grading(on_cpu(FakeDevice(run=lambda _: {"changed_inputs": ("A",)})))
    assert isinstance(outcome_of(grade_accuracy, made), RuleViolation)
