"""Grading files in tests: one in its own session, or many with a few sessions on a GPU, faster
than an organiser's queue would."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.session import Process, Session
from harness.judge.submission import read
from harness.judge.workers.session import Choice, open_session
from harness.protocol.compiler import Disassemble, Disassembled
from harness.protocol.report import DisassembledKernel, Report
from harness.protocol.request import Request


def grade_file(path: Path, device: Choice, options: GradingOptions) -> Report:
    """Grade as the command line does."""
    with open_session(device) as session:
        return grade(read(path), session, options)


class LastingCompiler:
    """A compiler that outlives a grading. It can leave machine code unread: the disassembler takes
    half a second for each kernel, and finds no verdict."""

    def __init__(self, compiler: Process, disassembles: bool) -> None:
        self._compiler = compiler
        self._disassembles = disassembles

    def ask(self, request: Request[Any]) -> Any:
        if isinstance(request, Disassemble) and not self._disassembles:
            facts = DisassembledKernel(**dict(request.kernel.facts), badges=(), instructions={})
            return Disassembled(kernel=facts, warnings=())
        return self._compiler.ask(request)

    def close(self) -> None: ...


def with_parts(session: Session, **parts: Any) -> Session:
    """Return the session with some of its parts replaced."""

    class Replaced:
        def __getattr__(self, name: str) -> Any:
            return parts[name] if name in parts else getattr(session, name)

    return cast(Session, Replaced())


def lasting(session: Session, *, disassembles: bool = False) -> Session:
    """Return a session whose processes outlive a grading (they are still replaced after a fault),
    and without a lock: only the verdicts of these gradings count."""
    return with_parts(
        session,
        compiler=LastingCompiler(session.compiler, disassembles),
        start=lambda **_: None,
        renew=lambda: None,
        shared_lock=lambda _: nullcontext(),
        exclusive_lock=lambda _: nullcontext(),
    )


@contextmanager
def graded_on_gpu(
    options: dict[Path, GradingOptions], threads: int
) -> Iterator[Callable[[Path], Report]]:
    """Give a function that returns the report of a file. So many files are graded at a time."""
    free: SimpleQueue[Session] = SimpleQueue()

    def work(path: Path, how: GradingOptions) -> Report:
        session = free.get()
        try:
            return grade(read(path), session, how)
        finally:
            free.put(session)

    with ExitStack() as sessions, ThreadPoolExecutor(threads) as pool:
        for _ in range(threads):
            free.put(lasting(sessions.enter_context(open_session("cuda"))))
        reports = {path: pool.submit(work, path, how) for path, how in options.items()}
        try:
            yield lambda path: reports[path].result()
        finally:  # what was interrupted is not waited for: it ends with its processes
            pool.shutdown(wait=False, cancel_futures=True)
            sessions.close()


def wanted(request: pytest.FixtureRequest, test: str) -> list[Path]:
    """Return the files that this test was selected for."""
    items = cast(list[pytest.Function], request.session.items)
    return [item.callspec.params["path"] for item in items if item.originalname == test]
