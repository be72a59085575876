"""Every solution is right and safe on the CPU device; what it is worth is in reports/."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.grade import GradingOptions
from harness.report import Report, Verdict
from tests.grading import graded, wanted

SOLUTIONS = sorted((Path(__file__).resolve().parent.parent / "solutions").glob("*.cu"))


@pytest.fixture(scope="module")
def reports(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Report]]:
    options = GradingOptions(quick=True)
    paths = wanted(request, "test_a_solution_is_accepted")
    with graded("cpu", dict.fromkeys(paths, options), threads=2) as reports:
        yield reports


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_is_accepted(path: Path, reports: Callable[[Path], Report]) -> None:
    report = reports(path)
    assert report.verdict is Verdict.ACCEPTED, report.outcome
