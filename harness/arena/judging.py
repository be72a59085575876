"""The one place in which the arena calls the judge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness.arena.build import Build
from harness.arena.checkup import CUBLAS, CheckUp, Known, reference_set
from harness.calibrate import calibrate
from harness.devices.health import health
from harness.errors import JudgeFailure, UsageError
from harness.grade import GradingOptions, grade
from harness.progress import Progress
from harness.report import Accepted, Report, Submission, Verdict
from harness.submission import read
from harness.workers.session import Choice, Session, open_session


class Judge:
    """Grades one submission after another on one device."""

    def __init__(self, session: Session, quick: bool) -> None:
        self._session = session
        self._options = GradingOptions(quick=quick)

    @property
    def quick(self) -> bool:
        return self._options.quick

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

    def check_up(self, progress: Progress) -> CheckUp:
        """What this GPU makes of cuBLAS beside itself and of the reference set."""
        info = self._session.info
        assert info.uuid is not None
        cold = health(info.uuid)
        known = [self._calibrated(progress)]
        for path in reference_set(info.arch):
            report = grade(read(path), self._session, self._options, progress)
            outcome = report.outcome
            known.append(
                Known.of(
                    path.stem,
                    report.verdict,
                    outcome.score if isinstance(outcome, Accepted) else None,
                    report.measurement.rounds if report.measurement else (),
                    getattr(outcome, "message", ""),
                )
            )
        build = str(Build.here(self.quick))
        return CheckUp(
            judge=build, device=info, cold=cold, hot=health(info.uuid), known=tuple(known)
        )

    def _calibrated(self, progress: Progress) -> Known:
        try:
            found = calibrate(self._session, None, progress)
        except (JudgeFailure, UsageError) as error:
            return Known.of(CUBLAS, Verdict.JUDGE_ERROR, None, (), str(error))
        return Known.of(CUBLAS, Verdict.ACCEPTED, found.score, found.rounds)


@contextmanager
def open_judge(device: Choice, quick: bool) -> Iterator[Judge]:
    """Raises UsageError or JudgeFailure where the device cannot be used."""
    with open_session(device) as session:
        yield Judge(session, quick)
