"""Each solution is right and safe on the CPU device; its score is in reports/."""

from pathlib import Path

import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import read
from harness.judge.workers.session import Session
from harness.protocol.report import Verdict
from tests.waiting import PATIENCE

SOLUTIONS = sorted((Path(__file__).resolve().parent.parent / "solutions").glob("*.cu"))


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_is_accepted(path: Path, cpu_session: Session) -> None:
    report = grade(read(path), cpu_session, GradingOptions(quick=True, seconds=PATIENCE))
    assert report.verdict is Verdict.ACCEPTED, report.outcome
