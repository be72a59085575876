"""Every solution is right and safe on the CPU device; what it is worth is in reports/."""

from pathlib import Path

import pytest

from harness.grade import GradingOptions, grade
from harness.report import Verdict
from harness.submission import read
from harness.workers.session import Session
from tests.waiting import PATIENCE

SOLUTIONS = sorted((Path(__file__).resolve().parent.parent / "solutions").glob("*.cu"))


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_is_accepted(path: Path, cpu_session: Session) -> None:
    report = grade(read(path), cpu_session, GradingOptions(quick=True, seconds=PATIENCE))
    assert report.verdict is Verdict.ACCEPTED, report.outcome
