"""A GPU's gradings in a process of their own, with all lanes of it: between them and those of other
GPUs is no lock of the interpreter's.

The process is handed submissions and says what becomes of them. It ends with the one that started
it, and what it is at ends with it.
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
"""To end its workers and take away what they leave."""


class _Asked(NamedTuple):
    lane: int
    submission: Submission | Unreadable
    options: GradingOptions


class _Opened(NamedTuple):
    """The first that it says, unless it says why there is none."""

    lanes: int


class _Failed(NamedTuple):
    error: UsageError | JudgeFailure


class _Began(NamedTuple):
    stage: Stage
    total: int | None


class _Stepped(NamedTuple):
    text: str


class _Found(NamedTuple):
    sentences: tuple[str, ...]


class _Gone(NamedTuple):
    """Said of it, not by it."""


_Said = _Began | _Stepped | _Found | Report | _Failed | _Gone


class Lane:
    """One of those that the process has: grades one submission after the other."""

    def __init__(self, number: int, ask: Callable[[_Asked | None], None]) -> None:
        self.said: SimpleQueue[_Said] = SimpleQueue()
        self._number = number
        self._ask = ask

    def grade(
        self, submission: Submission | Unreadable, options: GradingOptions, progress: Progress
    ) -> Report:
        """Raises JudgeFailure where the process ends meanwhile."""
        self._ask(_Asked(self._number, submission, options))
        while True:
            match self.said.get():
                case _Began(stage, total):
                    progress.begin(stage, total)
                case _Stepped(text):
                    progress.step(text)
                case _Found(sentences):
                    progress.found(sentences)
                case _Failed(error):
                    raise error
                case _Gone() as gone:
                    self.said.put(gone)  # for whoever comes next
                    raise JudgeFailure("the process that grades on this GPU has ended")
                case report:
                    return report

    def stop(self) -> None:
        """End what all lanes of the GPU are at, for good."""
        self._ask(None)


@contextmanager
def open_gpu(
    gpu: str | None, cores: Cores | None, choice: Choice = "cuda"
) -> Iterator[Sequence[Lane]]:
    """The lanes of the GPU of this UUID. Raises UsageError or JudgeFailure, as `open_session`."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, choice, gpu, cores), daemon=True)
    process.start()
    theirs.close()
    sending = threading.Lock()

    def ask(asked: _Asked | None) -> None:
        with sending, suppress(OSError):  # where it is gone, that is what is heard next
            ours.send(asked)

    with closing(ours):
        try:
            lanes = [Lane(number, ask) for number in range(_opened(ours).lanes)]
            threading.Thread(target=_hear, args=(ours, lanes), daemon=True).start()
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


def _hear(connection: Connection, lanes: Sequence[Lane]) -> None:
    """Until it is gone."""
    try:
        while True:
            number, said = connection.recv()
            lanes[number].said.put(said)
    except (EOFError, OSError):
        for lane in lanes:
            lane.said.put(_Gone())


# -------------------------------------------------------------------------------- in the process


def _serve(connection: Connection, choice: Choice, gpu: str | None, cores: Cores | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that started this
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
    """To stop, or until nobody is there to tell."""
    sending, stopping = threading.Lock(), threading.Event()
    at_work: list[threading.Thread] = []

    def tell(number: int, said: _Said) -> None:
        with sending, suppress(OSError):
            connection.send((number, said))

    def work(asked: _Asked) -> None:
        progress = Stoppable(_Telling(asked.lane, tell), stopping)
        try:
            report = grade(asked.submission, sessions[asked.lane], asked.options, progress)
            tell(asked.lane, report)
        except Stopped:
            pass
        except BaseException as error:
            tell(asked.lane, _Failed(JudgeFailure(*crash(error))))

    with suppress(EOFError, OSError):
        while (asked := connection.recv()) is not None:
            thread = threading.Thread(target=work, args=(asked,))
            thread.start()
            at_work = [*(each for each in at_work if each.is_alive()), thread]
    stopping.set()
    for session in sessions if any(thread.is_alive() for thread in at_work) else ():
        session.renew()
    for thread in at_work:
        thread.join()


class _Telling:
    """Progress that is shown elsewhere."""

    def __init__(self, number: int, tell: Callable[[int, _Said], None]) -> None:
        self._number = number
        self._tell = tell

    def begin(self, stage: Stage, total: int | None) -> None:
        self._tell(self._number, _Began(stage, total))

    def step(self, text: str) -> None:
        self._tell(self._number, _Stepped(text))

    def found(self, sentences: Iterable[str]) -> None:
        self._tell(self._number, _Found(tuple(sentences)))
