"""A worker: takes gradings from the queue, one for each lane of its judge, and hands in their
reports.

It is started with the database's address as a worker in its environment, and knows no other.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from procrastinate import App, JobContext
from procrastinate.exceptions import ConnectorException
from psycopg import OperationalError
from sqlalchemy import URL, make_url

from harness.arena.build import Build
from harness.arena.handed_in import kept
from harness.arena.judging import Judge, open_judge
from harness.arena.logs import log_as
from harness.arena.presence import Presence
from harness.arena.processes import (
    CREW_VARIABLE,
    DATABASE_VARIABLE,
    NICENESS,
    End,
    end_with_parent,
)
from harness.arena.progress import GradingProgress
from harness.arena.queue import (
    QUEUE,
    TASK,
    conninfo,
    queue_app,
    queue_of,
)
from harness.arena.store.attempts import Attempt, Attempts
from harness.arena.store.line import Line
from harness.arena.store.membership import Duty, Held, Membership, Newcomer, Refused
from harness.board.document import Document
from harness.judge.workers.cores import keep_to, shared_out
from harness.protocol.report import Stage

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
HEARTBEAT_SECONDS = 5.0
"""How often the queue hears of the worker itself."""


class Superseded(BaseException):
    """The attempt holds nothing any more: cancelled, or given to another worker.

    No Exception, because the judge makes a verdict of those.
    """


class Watched:
    """The progress of one attempt or game, told to the database once a second, and at once when a
    stage begins or has found something.

    As harness.judge.progress.Progress.
    """

    def __init__(self, tell: Callable[[GradingProgress], bool]) -> None:
        """tell: says whether it still counts."""
        self._say = tell
        self._progress = GradingProgress()
        self._held = True
        self._over = threading.Event()
        self._new = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="progress", daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._new.set()
        self._thread.join()

    def begin(self, stage: Stage, total: int | None) -> None:
        self._check()
        self._progress = self._progress.began(stage, total)
        self._new.set()

    def step(self, text: str) -> None:
        self._check()
        self._progress = self._progress.stepped(text)

    def found(self, sentences: Iterable[str]) -> None:
        self._check()
        self._progress = self._progress.having_found(sentences)
        self._new.set()

    def _check(self) -> None:
        if not self._held:
            raise Superseded

    def _tell(self) -> None:
        while not self._over.is_set():
            self._new.clear()
            if not self._say(self._progress):
                self._held = False
                return
            self._new.wait(BEAT_SECONDS)


class Worker:
    """Does what the arena says: serves the queue, rests, or leaves."""

    def __init__(
        self,
        app: App,
        presence: Presence,
        attempts: Attempts,
        judge: Judge,
        queues: Sequence[str],
    ) -> None:
        self._app = app
        self._presence = presence
        self._attempts = attempts
        self._judge = judge
        self._queues = queues
        self._held: set[Attempt] = set()
        app.task(name=TASK, queue=QUEUE, pass_context=True)(self._grade)

    async def run(self) -> End:
        """Until it is told to leave."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_nobody_waited)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._leave)
        while (duty := self._presence.duty) is not Duty.LEAVE:
            if duty is Duty.SERVE:
                await self._serve()
            else:
                await self._presence.changed(duty)
        return End.DRAINED

    async def _serve(self) -> None:
        """As long as that is its duty. A database that goes away costs nothing but time."""
        while self._presence.duty is Duty.SERVE:
            try:
                async with self._app.open_async():
                    await self._serve_until_told()
            except (ConnectorException, OperationalError) as error:
                log.warning("the queue does not answer: %s", error)
                await asyncio.sleep(0.3)

    async def _serve_until_told(self) -> None:
        serving = asyncio.create_task(
            self._app.run_worker_async(
                queues=self._queues,
                concurrency=self._judge.lanes,
                install_signal_handlers=False,
                fetch_job_polling_interval=2.0,
                update_heartbeat_interval=HEARTBEAT_SECONDS,
            )
        )
        told = asyncio.create_task(self._presence.changed(Duty.SERVE))
        await asyncio.wait((serving, told), return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        serving.cancel()  # what is in hand is finished first
        with suppress(asyncio.CancelledError):
            await serving

    def _leave(self) -> None:
        """Give back what is held and be gone: the judge's processes end with this one."""
        for held in tuple(self._held):
            if self._attempts.give_back(held.attempt):
                log.info("given back", extra={"submission": held.submission})
        self._presence.leave()
        os._exit(0)

    async def _grade(self, context: JobContext, grading: int) -> None:
        job = context.job.id
        assert job is not None
        attempt = await asyncio.to_thread(self._attempts.take, job)
        if attempt is None:
            log.info("nothing to do", extra={"grading": grading})
            return
        about = {"submission": attempt.submission, "attempt": str(attempt.attempt)}
        log.info("grading", extra=about)
        began = time.monotonic()
        self._held.add(attempt)
        try:
            document = await asyncio.to_thread(self._report, attempt)
        except Superseded:
            log.info("it does not count any more", extra=about)
            return
        finally:
            self._held.discard(attempt)
        counted = await asyncio.to_thread(self._attempts.finish, attempt.attempt, document)
        log.info(
            "graded" if counted else "graded, but it does not count any more",
            extra=about
            | {
                "verdict": document.report.verdict.value,
                "seconds": round(time.monotonic() - began, 3),
            },
        )

    def _report(self, attempt: Attempt) -> Document:
        submission = kept(attempt.name, attempt.author, attempt.source)

        def tell(progress: GradingProgress) -> bool:
            return self._attempts.go_on(attempt.attempt, progress)

        with Watched(tell) as progress:
            report = self._judge.grade(submission, progress)
        return Document.of(report.model_copy(update={"created": attempt.began}))


def _nobody_waited(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a task of the queue's came to, where the queue itself does not ask: a database that went
    away while it was told that a job is done. The job's lease ends, and the sweeper sees to it."""
    error = context.get("exception")
    if isinstance(error, ConnectorException | OperationalError):
        log.warning("the queue does not answer: %s", error)
    else:
        loop.default_exception_handler(context)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="A worker of the arena, which starts it.")
    parser.add_argument("--name", default="worker")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cpu")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--gpu", type=int, default=0, help="which of this machine's it has")
    parser.add_argument("--gpus", type=int, help="how many of them work")
    options = parser.parse_args(arguments)
    log_as(options.name)
    end_with_parent()
    os.nice(NICENESS)
    shares = shared_out(options.gpus) if options.gpus else None
    cores = shares[options.gpu] if shares else None
    if cores is not None:
        keep_to(os.getpid(), cores.helping)
    address = make_url(os.environ.pop(DATABASE_VARIABLE))
    crew = UUID(os.environ[CREW_VARIABLE])
    try:
        with open_judge(options.device, options.quick, cores) as judge:
            return asyncio.run(_work(address, crew, options.name, judge))
    except (Refused, Held) as error:
        log.error("refused: %s", error)
        return End.REFUSED


async def _work(address: URL, crew: UUID, name: str, judge: Judge) -> End:
    host = socket.gethostname()
    line = Line(conninfo(address))
    newcomer = Newcomer(
        id=judge.gpu or f"{address.username}/{host}/{name}",
        crew=crew,
        name=f"{name} on {host}",
        model=judge.model,
    )
    queues = [QUEUE]
    if judge.model is not None:
        queues.append(queue_of(judge.model))
    async with Presence(Membership(line, newcomer, Build.here(judge.quick))) as presence:
        working = Line(conninfo(address))
        attempts = Attempts(working, presence.membership)
        worker = Worker(queue_app(address), presence, attempts, judge, queues)
        return await worker.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
