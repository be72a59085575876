"""The judge grades another problem on both devices without a change to harness/."""

from collections.abc import Iterator

import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.session import Session
from harness.judge.stages import measure, rounds
from harness.judge.workers.session import open_session
from harness.protocol import report as protocol
from problem import starter
from tests.grading import lasting
from tests.transposition import KNOWN, TRANSPOSITION

RIGHT = """
__global__ void transposition_kernel(const float* input, float* output, int rows, int columns) {
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i < columns && j < rows) output[i * rows + j] = input[j * columns + i];
}
"""
COPIES = RIGHT.replace("input[j * columns + i]", "input[i * rows + j]")
WITHOUT_A_BOUND = RIGHT.replace("i < columns && ", "")


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    if request.param == "cpu":
        yield request.getfixturevalue("cpu_session")
        return
    with open_session(request.param) as opened:
        yield lasting(opened)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "FULL", rounds.Extent(12, 2.0, thorough=True))
    monkeypatch.setattr(rounds, "SUSTAIN_SECONDS", 0.1)


def graded(session: Session, source: str) -> protocol.Report:
    submission = protocol.Submission(name="transposed", author=None, sha256="0" * 64, source=source)
    return grade(submission, session, GradingOptions(seed=3), problem=TRANSPOSITION)


def test_a_correct_kernel_of_another_problem_is_accepted(session: Session) -> None:
    report = graded(session, RIGHT)
    assert isinstance(report.outcome, protocol.Accepted), report.outcome
    assert report.environment.cases == 1 and report.accuracy is None
    shapes = [result.case.shape for result in report.verification.cases]
    assert shapes[: len(KNOWN)] == [case.shape for case in KNOWN]
    assert shapes[-1] == TRANSPOSITION.ranked.shape
    assert (report.measurement is None) is (session.timing is None)


def test_a_wrong_kernel_of_another_problem_gets_a_counterexample(session: Session) -> None:
    report = graded(session, COPIES)
    assert isinstance(report.outcome, protocol.WrongAnswer), report.outcome
    assert "output is transposed" in report.outcome.message


def test_findings_name_the_buffers_of_another_problem(session: Session) -> None:
    report = graded(session, WITHOUT_A_BOUND)
    assert isinstance(report.outcome, protocol.MemoryFault), report.outcome
    assert {str(each.array) for each in report.outcome.findings} <= {"input", "output"}


def test_wrong_parameters_are_answered_with_the_signature(session: Session) -> None:
    report = graded(session, starter.text())
    assert isinstance(report.outcome, protocol.CompileError)
    assert "const float* input, float* output, int rows, int columns" in report.outcome.message
