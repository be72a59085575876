"""Every solution is right and safe on the CPU device; what it is worth is in reports/."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.grade import Options, grade
from harness.report import Verdict
from harness.workers.isolation import Role
from tests.grading import shared_workers

SOLUTIONS = sorted((Path(__file__).resolve().parent.parent / "solutions").glob("*.cu"))


@pytest.fixture(scope="module")
def workers() -> Iterator[None]:
    with shared_workers(Role.CPU):
        yield


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
@pytest.mark.usefixtures("workers")
def test_a_solution_is_accepted(path: Path) -> None:
    report = grade(path, Options(device="cpu", quick=True))
    assert report.verdict is Verdict.ACCEPTED, report.outcome
