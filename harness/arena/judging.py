"""The one place in which the arena calls the judge.

A GPU has several lanes where the machine has cores for them: while one measures, the submissions of
the others are compiled, sanitized on the CPU device and multiplied on the host, on cores that
measure nothing, and their processes get ready. So the GPU is not idle, and no measurement is
disturbed.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from harness.judge.grade import GradingOptions, grade
from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.submission import Unreadable
from harness.judge.workers.cores import Cores
from harness.judge.workers.session import Choice, open_sessions
from harness.protocol.report import Report, Submission


class Judge:
    """Grades one submission after another on one device: its sessions take turns there."""

    def __init__(self, sessions: Sequence[Session], quick: bool) -> None:
        self.lanes = len(sessions)
        """The number of submissions that it can take at a time."""
        self._info = sessions[0].info
        self._scores = sessions[0].timing is not None
        self._free: queue.SimpleQueue[Session] = queue.SimpleQueue()
        for session in sessions:
            self._free.put(session)
        self._options = GradingOptions(quick=quick)

    @property
    def quick(self) -> bool:
        return self._options.quick

    @property
    def gpu(self) -> str | None:
        """The GPU's UUID; None without a GPU."""
        return self._info.uuid

    @property
    def model(self) -> str | None:
        """The GPU's model, if its scores are ranked; else None."""
        return self._info.name if self._scores and not self._options.quick else None

    def grade(self, submission: Submission | Unreadable, progress: Progress) -> Report:
        with self._lane() as session:
            return grade(submission, session, self._options, progress)

    @contextmanager
    def _lane(self) -> Iterator[Session]:
        session = self._free.get()
        try:
            yield session
        finally:
            self._free.put(session)


@contextmanager
def open_judge(device: Choice, quick: bool, cores: Cores | None = None) -> Iterator[Judge]:
    """cores: of a GPU, where there are enough for several lanes. Raises UsageError or JudgeFailure
    where the device cannot be used."""
    with open_sessions(device, None, cores) as sessions:
        yield Judge(sessions, quick)
