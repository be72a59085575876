"""The one place in which the arena calls the judge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness.grade import GradingOptions, grade
from harness.progress import Progress
from harness.report import Report, Submission
from harness.workers.session import Choice, Session, open_session


class Judge:
    """Grades one submission after another on one device."""

    def __init__(self, session: Session, quick: bool) -> None:
        self._session = session
        self._options = GradingOptions(quick=quick)

    def grade(self, submission: Submission, progress: Progress) -> Report:
        return grade(submission, self._session, self._options, progress)


@contextmanager
def open_judge(device: Choice, quick: bool) -> Iterator[Judge]:
    """Raises UsageError or JudgeFailure where the device cannot be used."""
    with open_session(device) as session:
        yield Judge(session, quick)
