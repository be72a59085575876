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

    @property
    def gpu(self) -> str | None:
        """Its UUID; None without one."""
        return self._session.info.uuid

    @property
    def model(self) -> str | None:
        """Of a GPU that gives scores which rank."""
        ranks = self._session.timing is not None and not self._options.quick
        return self._session.info.name if ranks else None

    def grade(self, submission: Submission, progress: Progress) -> Report:
        return grade(submission, self._session, self._options, progress)


@contextmanager
def open_judge(device: Choice, quick: bool) -> Iterator[Judge]:
    """Raises UsageError or JudgeFailure where the device cannot be used."""
    with open_session(device) as session:
        yield Judge(session, quick)
