"""The gradings of one GPU in a process of its own, so that GPUs do not share Python's interpreter
lock.

The process gets submissions, and sends progress and reports back. It ends with the process that
started it, and ends its gradings with itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import NamedTuple

from harness.judge.grade import GradingOptions, grade
from harness.judge.progress import Progress, Stoppable, Stopped
from harness.judge.session import Session
from harness.judge.submission import Unreadable
from harness.judge.workers.cores import Cores, keep_to
from harness.judge.workers.session import Choice, open_sessions
from harness.protocol.errors import JudgeFailure, UsageError, crash
from harness.protocol.report import Report, Stage, Submission

END_SECONDS = 10.0
"""Time limit for ending its workers and removing their files."""


class _Request(NamedTuple):
    lane: int
    submission: Submission | Unreadable
    options: GradingOptions


class _Opened(NamedTuple):
    """The first message: the GPU can be used."""

    lanes: int


class _Failed(NamedTuple):
    error: UsageError | JudgeFailure


class _StageBegan(NamedTuple):
    stage: Stage
    total: int | None


class _Step(NamedTuple):
    text: str


class _Found(NamedTuple):
    sentences: tuple[str, ...]


class _Ended(NamedTuple):
    """The process has ended."""


_Message = _StageBegan | _Step | _Found | Report | _Failed | _Ended


class Lane:
    """Grades one submission after another in the process."""

    def __init__(self, number: int, ask: Callable[[_Request | None], None]) -> None:
        self.messages: SimpleQueue[_Message] = SimpleQueue()
        self._number = number
        self._ask = ask

    def grade(
        self, submission: Submission | Unreadable, options: GradingOptions, progress: Progress
    ) -> Report:
        """Grade a submission. Raises JudgeFailure if the process ends meanwhile."""
        self._ask(_Request(self._number, submission, options))
        while True:
            match self.messages.get():
                case _StageBegan(stage, total):
                    progress.begin(stage, total)
                case _Step(text):
                    progress.step(text)
                case _Found(sentences):
                    progress.found(sentences)
                case _Failed(error):
                    raise error
                case _Ended() as gone:
                    self.messages.put(gone)  # for the next grading
                    raise JudgeFailure("the process that grades on this GPU has ended")
                case report:
                    return report

    def stop(self) -> None:
        """End the gradings of all lanes of this GPU, and their process."""
        self._ask(None)


@contextmanager
def open_gpu(
    gpu: str | None, cores: Cores | None, choice: Choice = "cuda"
) -> Iterator[Sequence[Lane]]:
    """Open the lanes of the GPU with this UUID. Raises UsageError or JudgeFailure."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, choice, gpu, cores), daemon=True)
    process.start()
    theirs.close()
    sending = threading.Lock()

    def ask(request: _Request | None) -> None:
        with sending, suppress(OSError):  # if the process has ended, _receive says so
            ours.send(request)

    with closing(ours):
        try:
            lanes = [Lane(number, ask) for number in range(_opened(ours).lanes)]
            threading.Thread(target=_receive, args=(ours, lanes), daemon=True).start()
            yield lanes
        finally:
            ask(None)
            process.join(END_SECONDS)
            process.kill()
            process.join()


def _opened(connection: Connection) -> _Opened:
    try:
        said = connection.recv()
    except (EOFError, OSError):
        raise JudgeFailure("the process that should grade on this GPU has ended") from None
    if isinstance(said, _Failed):
        raise said.error
    assert isinstance(said, _Opened)
    return said


def _receive(connection: Connection, lanes: Sequence[Lane]) -> None:
    """Pass on the messages of the process until it ends."""
    try:
        while True:
            number, said = connection.recv()
            lanes[number].messages.put(said)
    except (EOFError, OSError):
        for lane in lanes:
            lane.messages.put(_Ended())


# -------------------------------------------------------------------------------- in the process


def _serve(connection: Connection, choice: Choice, gpu: str | None, cores: Cores | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    if cores is not None:
        keep_to(os.getpid(), cores.helping)
    try:
        with open_sessions(choice, gpu, cores) as sessions:
            _ = sessions[0].info
            connection.send(_Opened(len(sessions)))
            _grade_until_told(connection, sessions)
    except (UsageError, JudgeFailure) as error:
        connection.send(_Failed(error))


def _grade_until_told(connection: Connection, sessions: Sequence[Session]) -> None:
    """Grade until told to stop, or until the parent process has ended."""
    sending, stopping = threading.Lock(), threading.Event()
    grading: list[threading.Thread] = []

    def tell(number: int, said: _Message) -> None:
        with sending, suppress(OSError):
            connection.send((number, said))

    def work(request: _Request) -> None:
        progress = Stoppable(_SentProgress(request.lane, tell), stopping)
        try:
            report = grade(request.submission, sessions[request.lane], request.options, progress)
            tell(request.lane, report)
        except Stopped:
            pass
        except BaseException as error:
            tell(request.lane, _Failed(JudgeFailure(*crash(error))))

    with suppress(EOFError, OSError):
        while (request := connection.recv()) is not None:
            thread = threading.Thread(target=work, args=(request,))
            thread.start()
            grading = [*(each for each in grading if each.is_alive()), thread]
    stopping.set()
    for session in sessions if any(thread.is_alive() for thread in grading) else ():
        session.renew()
    for thread in grading:
        thread.join()


class _SentProgress:
    """Progress that is sent to the parent process."""

    def __init__(self, number: int, tell: Callable[[int, _Message], None]) -> None:
        self._number = number
        self._tell = tell

    def begin(self, stage: Stage, total: int | None) -> None:
        self._tell(self._number, _StageBegan(stage, total))

    def step(self, text: str) -> None:
        self._tell(self._number, _Step(text))

    def found(self, sentences: Iterable[str]) -> None:
        self._tell(self._number, _Found(tuple(sentences)))
