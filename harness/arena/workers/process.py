"""One worker: fetches tasks from an arena, one for each lane, and sends the reports.

A GPU has several lanes where the machine has cores for them, each with a session of its own. While
one measures, the submissions of the others are compiled, sanitized on the CPU device and multiplied
on the host, on cores that measure nothing. So the GPU is not idle, and no measurement is disturbed.

The arena's address and the worker's key come in the environment.
"""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NoReturn
from uuid import UUID

from harness.arena.build import Build
from harness.arena.logs import log_as
from harness.arena.processes import (
    ADDRESS_VARIABLE,
    NICENESS,
    SUPERVISOR_VARIABLE,
    End,
    end_with_parent,
)
from harness.arena.progress import GradingProgress
from harness.arena.submitted import stored
from harness.arena.workers.api import KEY_VARIABLE, LEASE_SECONDS, Decision, Heartbeat, Join, Task
from harness.arena.workers.connection import Connection, GpuTaken, Refused, SessionLost
from harness.judge.grade import GradingOptions, grade
from harness.judge.session import Session
from harness.judge.workers.cores import set_affinity, set_session_niceness, shared_out
from harness.judge.workers.processes import no_children
from harness.judge.workers.session import open_sessions
from harness.protocol.report import DeviceKind, Stage

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
FASTEST_BEAT_SECONDS = 0.1


class Superseded(BaseException):
    """The attempt was cancelled, or given to another worker.

    It is no Exception, because the judge turns those into a verdict.
    """


class AttemptProgress:
    """The progress of one attempt, which the worker's heartbeats report.

    It implements harness.judge.progress.Progress.
    """

    def __init__(self, changed: threading.Event) -> None:
        """changed: set when there is something to report at once."""
        self._changed = changed
        self.progress = GradingProgress()
        self.lost = False

    def begin(self, stage: Stage, total: int | None) -> None:
        self._go_on(self.progress.began(stage, total))
        self._changed.set()

    def step(self, text: str) -> None:
        self._go_on(self.progress.stepped(text))

    def found(self, sentences: Iterable[str]) -> None:
        self._go_on(self.progress.having_found(sentences))
        self._changed.set()

    def _go_on(self, progress: GradingProgress) -> None:
        if self.lost:
            raise Superseded
        self.progress = progress


class Worker:
    """A worker, which serves until the arena lets it leave."""

    def __init__(
        self, arena: Connection, sessions: Sequence[Session], supervisor: UUID, name: str
    ) -> None:
        """sessions: of one device, one for each lane."""
        host, device = socket.gethostname(), sessions[0].info
        self._arena = arena
        self._sessions = sessions
        self._supervisor = supervisor
        self._id = device.uuid or f"{host}/{name}"
        self._name = f"{name} on {host}"
        self._model = device.name if device.kind is DeviceKind.CUDA else None
        self._session = UUID(int=0)
        self._leaves = threading.Event()
        self._changed = threading.Event()
        self._held: dict[UUID, AttemptProgress] = {}
        """What the lanes hold. The main thread uses copies, which no lane can change."""

    def run(self) -> End:
        """Work until the arena says leave, or a signal does. Raises Refused or GpuTaken."""
        self._join()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._give_back())
        lanes = [
            threading.Thread(target=self._lane, args=(session,), name=f"lane-{n}", daemon=True)
            for n, session in enumerate(self._sessions)
        ]
        for lane in lanes:
            lane.start()
        while any(lane.is_alive() for lane in lanes):
            try:
                self._send_heartbeat()
            except SessionLost:
                log.warning("this worker counted as dead at the arena; it joins again")
                self._join()
            self._changed.wait(BEAT_SECONDS)
            time.sleep(FASTEST_BEAT_SECONDS)
            self._changed.clear()
        self._arena.leave(self._session)
        return End.DRAINED

    # ------------------------------------------------------------------------ joining, heartbeats

    def _join(self) -> None:
        """Join; if another worker holds the GPU, wait for its lease once, as it may have died."""
        deadline = time.monotonic() + LEASE_SECONDS + 2 * BEAT_SECONDS
        while True:
            join = Join(
                worker=self._id,
                supervisor=self._supervisor,
                name=self._name,
                model=self._model,
                build=Build.here(),
            )
            try:
                self._session = self._arena.join(join)
                log.info("joined")
                return
            except GpuTaken as taken:
                if time.monotonic() > deadline:
                    raise
                log.info("waiting: %s", taken)
                time.sleep(2 * BEAT_SECONDS)

    def _send_heartbeat(self) -> None:
        held = self._held.copy()
        progress = {attempt: each.progress for attempt, each in held.items()}
        answer = self._arena.heartbeat(self._session, Heartbeat(attempts=progress))
        for attempt in answer.lost:
            if attempt in held:
                held[attempt].lost = True
        if answer.leave and not self._leaves.is_set():
            log.info("leaves after the current tasks")
            self._leaves.set()

    def _give_back(self) -> None:
        """Give back what is held and end."""
        with suppress(Exception):
            for attempt in self._held.copy():
                self._arena.release(attempt)
                log.info("given back", extra={"attempt": str(attempt)})
            self._arena.leave(self._session)
        _end_now(0)

    # ----------------------------------------------------------------------------------- grading

    def _lane(self, session: Session) -> None:
        while not self._leaves.is_set():
            try:
                task = self._arena.fetch(self._session)
            except (SessionLost, Refused) as error:
                log.warning("no task: %s", error)
                time.sleep(BEAT_SECONDS)  # the main thread joins again, or ends this process
                continue
            if task is not None:
                self._grade(task, session)

    def _grade(self, task: Task, session: Session) -> None:
        about = {"submission": task.submission, "attempt": str(task.attempt)}
        log.info("grading", extra=about)
        began = time.monotonic()
        progress = AttemptProgress(self._changed)
        self._held[task.attempt] = progress
        try:
            submission = stored(task.name, task.author, task.source)
            report = grade(submission, session, GradingOptions(quick=task.quick), progress)
            outcome = self._arena.finish(task.attempt, report)
        except Superseded:
            log.info("it does not count any more", extra=about)
            return
        except Refused as error:
            log.error("the arena refuses the report: %s", error, extra=about)
            return
        except Exception:
            # The heartbeats name this attempt no more, and so the arena takes it for dead.
            log.exception("the judge failed", extra=about)
            return
        finally:
            del self._held[task.attempt]
        seconds = round(time.monotonic() - began, 3)
        verdict: dict[str, object] = {"verdict": report.verdict.value, "seconds": seconds}
        log.info(_MESSAGES[outcome], extra=about | verdict)


_MESSAGES = {
    Decision.COUNTED: "graded",
    Decision.RETRY: "the judge failed; it is graded again",
    Decision.LOST: "graded, but it does not count any more",
}


def _end_now(code: int) -> NoReturn:
    """End this process and those of the judge, in the middle of their work."""
    with no_children():
        os._exit(code)


def main(arguments: Sequence[str]) -> End:
    parser = argparse.ArgumentParser(description="A worker, which its supervisor starts.")
    parser.add_argument("--name", default="worker")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cpu")
    parser.add_argument("--gpu", type=int, default=0, help="which of this machine's it has")
    parser.add_argument("--gpus", type=int, help="how many of them work")
    options = parser.parse_args(arguments)
    log_as(options.name)
    end_with_parent()
    os.nice(NICENESS)
    set_session_niceness(os.getpid())
    shares = shared_out(options.gpus) if options.gpus else None
    cores = shares[options.gpu] if shares else None
    if cores is not None:
        set_affinity(os.getpid(), cores.helping)
    # The kernels that are graded are strangers': their processes inherit no key.
    arena = Connection(os.environ.pop(ADDRESS_VARIABLE), os.environ.pop(KEY_VARIABLE))
    supervisor = UUID(os.environ.pop(SUPERVISOR_VARIABLE))
    with open_sessions(options.device, None, cores) as sessions:
        try:
            return Worker(arena, sessions, supervisor, options.name).run()
        except (Refused, GpuTaken) as error:
            log.error("refused: %s", error)
            _end_now(End.REFUSED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
