"""The judge grades another problem without a change to harness/."""

from __future__ import annotations

import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.session import Session
from harness.protocol.report import Accepted, Report, Submission, WrongAnswer
from problem import starter
from tests.other_problem import MAX_PLUS, RIGHT, WITHOUT_THE_LAST


def graded(session: Session, source: str, quick: bool = False) -> Report:
    submission = Submission(name="paths", author=None, sha256="0" * 64, source=source)
    return grade(submission, session, GradingOptions(quick=quick, seed=3), problem=MAX_PLUS)


@pytest.mark.parametrize("quick", [True, False])
def test_a_correct_kernel_of_another_problem_is_accepted(cpu_session: Session, quick: bool) -> None:
    report = graded(cpu_session, RIGHT, quick)
    assert isinstance(report.outcome, Accepted), report.outcome
    assert report.environment.cases == 1 and report.accuracy is None
    assert report.verification is not None
    shapes = [result.case.shape for result in report.verification.cases]
    known = MAX_PLUS.quick_known if quick else MAX_PLUS.known
    assert shapes[: len(known)] == [case.shape for case in known]
    assert quick or shapes[-1] == MAX_PLUS.ranked.shape


def test_a_wrong_kernel_of_another_problem_gets_a_counterexample(cpu_session: Session) -> None:
    report = graded(cpu_session, WITHOUT_THE_LAST)
    assert isinstance(report.outcome, WrongAnswer)
    assert "the last product of each sum is missing" in report.outcome.message
    first = report.outcome.counterexample.elements[0]
    assert first.found < first.expected


def test_matrix_multiplication_is_no_answer_to_it(cpu_session: Session) -> None:
    assert isinstance(graded(cpu_session, starter.text()).outcome, WrongAnswer)
