"""The starter, the file that users copy, is accepted as it is shipped."""

from dataclasses import replace
from pathlib import Path

from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import read
from harness.judge.workers.session import Session
from harness.protocol.report import Verdict
from problem import starter
from problem.cases import QUICK_CASES, Extent
from problem.problem import MATRIX_MULTIPLICATION

FEW_CASES = replace(
    MATRIX_MULTIPLICATION,
    quick_known=QUICK_CASES[2:9],
    extent=lambda *_: Extent(2, 0, 0, 3, 1 << 20, 1 << 20, 256),
)


def test_the_starter_is_accepted_without_a_warning(tmp_path: Path, cpu_session: Session) -> None:
    path = tmp_path / "my_kernel.cu"
    path.write_text(starter.text(), encoding="utf-8")
    report = grade(read(path), cpu_session, GradingOptions(quick=True), problem=FEW_CASES)
    assert report.verdict is Verdict.ACCEPTED, report.outcome
    assert report.kernel is not None and report.kernel.launch.is_default
    assert not report.diagnostics
