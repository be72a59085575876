"""Each solution is right and safe on the CPU device; its score is in reports/.

The longest are graded by nox -s architectures, which .ci/run runs, too: compiling them for the
CPU device takes minutes. test_solution_reports.py notices that a solution has changed since it was
measured.
"""

from pathlib import Path

import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import read
from harness.judge.workers.session import Session
from harness.protocol.report import Verdict
from tests.waiting import PATIENCE

LONG = 5_000
"""Bytes of a source. A longer kernel takes five to twenty seconds here."""

SOLUTIONS = [
    pytest.param(
        path, id=path.stem, marks=[pytest.mark.architectures] if path.stat().st_size > LONG else []
    )
    for path in sorted((Path(__file__).resolve().parent.parent / "solutions").glob("*.cu"))
]


@pytest.mark.parametrize("path", SOLUTIONS)
def test_a_solution_is_accepted(path: Path, cpu_session: Session) -> None:
    report = grade(read(path), cpu_session, GradingOptions(quick=True, seconds=PATIENCE))
    assert report.verdict is Verdict.ACCEPTED, report.outcome
