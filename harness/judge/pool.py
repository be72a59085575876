"""Many gradings on several GPUs: one queue of jobs, and several lanes for each GPU.

The lanes of a GPU take turns on it. While one measures, the others compile, sanitize on the CPU
device and multiply on the processor, on cores of their own. A GPU has one lane if there are too few
cores for that.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from harness.judge.progress import Progress, Stoppable, Stopped
from harness.judge.workers.cores import Cores, keep_to, shared_out
from harness.protocol.errors import JudgeFailure, UsageError

Job = TypeVar("Job")
Found = TypeVar("Found")
Job_contra = TypeVar("Job_contra", contravariant=True)


class Lane(Protocol):
    """Does one job after another on a GPU."""

    def stop(self) -> None:
        """End the job."""
        ...


AnyLane = TypeVar("AnyLane", bound=Lane)

Opening = Callable[[str, Cores | None], AbstractContextManager[Sequence[AnyLane]]]
"""Opens the lanes of the GPU with this UUID."""

Work = Callable[[Job, AnyLane, Progress], Found]


@dataclass(frozen=True, slots=True)
class Finished(Generic[Job, Found]):
    """A job that is done."""

    job: Job
    gpu: str
    found: Found


@dataclass(frozen=True, slots=True)
class Lost:
    """A GPU that could not be used, and the reason. The other GPUs are used."""

    gpu: str
    why: str


class Watcher(Protocol[Job_contra]):
    """Shows the progress of many jobs."""

    def job(self, job: Job_contra, gpu: str) -> AbstractContextManager[Progress]:
        """Show a job that is being done on a GPU."""
        ...


@contextmanager
def working(
    jobs: Iterable[Job],
    gpus: Sequence[str],
    work: Work[Job, AnyLane, Found],
    watcher: Watcher[Job],
    opening: Opening[AnyLane],
) -> Generator[Iterable[Finished[Job, Found] | Lost], None, None]:
    """Do the jobs, and give their results in the order in which they are done.

    Leaving the context ends the jobs that are not done. Raises JudgeFailure if no GPU can be used.
    """
    cores = shared_out(len(gpus))
    if cores is not None:
        keep_to(os.getpid(), frozenset().union(*(each.helping for each in cores)))
    with ExitStack() as stack:
        lanes, lost = _open(gpus, cores, opening, stack)
        if not lanes:
            raise JudgeFailure("; ".join(f"{each.gpu}: {each.why}" for each in lost))
        pool = _Pool(jobs, work, watcher)
        stack.callback(pool.stop)
        yield pool.results(lanes, lost)


def _open(
    gpus: Sequence[str],
    cores: Sequence[Cores] | None,
    opening: Opening[AnyLane],
    stack: ExitStack,
) -> tuple[list[tuple[str, AnyLane]], list[Lost]]:
    """Open all lanes before any of them measures, because opening a lane uses its GPU."""

    def opened(place: int) -> Sequence[tuple[str, AnyLane]] | Lost:
        gpu = gpus[place]
        manager = opening(gpu, cores[place] if cores else None)
        try:
            lanes = manager.__enter__()
        except (UsageError, JudgeFailure) as error:
            return Lost(gpu, str(error))
        closing.append(manager)
        return [(gpu, lane) for lane in lanes]

    closing: list[AbstractContextManager[Sequence[AnyLane]]] = []
    stack.callback(lambda: [manager.__exit__(None, None, None) for manager in closing])
    with ThreadPoolExecutor(len(gpus)) as threads:
        found = list(threads.map(opened, range(len(gpus))))
    return (
        [lane for lanes in found if not isinstance(lanes, Lost) for lane in lanes],
        [each for each in found if isinstance(each, Lost)],
    )


class _Pool(Generic[Job, AnyLane, Found]):
    """The threads that do the jobs, one for each lane."""

    def __init__(
        self, jobs: Iterable[Job], work: Work[Job, AnyLane, Found], watcher: Watcher[Job]
    ) -> None:
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            self._jobs.put(job)
        self._results: queue.SimpleQueue[Finished[Job, Found] | BaseException | None]
        self._results = queue.SimpleQueue()
        self._work = work
        self._watcher = watcher
        self._stopping = threading.Event()
        self._lanes: list[tuple[AnyLane, threading.Thread]] = []

    def results(
        self, lanes: Sequence[tuple[str, AnyLane]], lost: Iterable[Lost]
    ) -> Iterable[Finished[Job, Found] | Lost]:
        for gpu, lane in lanes:
            thread = threading.Thread(target=self._serve, args=(gpu, lane), daemon=True)
            self._lanes.append((lane, thread))
            thread.start()
        yield from lost
        at_work = len(lanes)
        while at_work:
            result = self._results.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                at_work -= 1
            else:
                yield result

    def stop(self) -> None:
        """End the jobs that are being done."""
        self._stopping.set()
        at_work = [(lane, thread) for lane, thread in self._lanes if thread.is_alive()]
        for lane, _ in at_work:
            lane.stop()
        for _, thread in at_work:  # one that was not started yet will find nothing to do
            thread.join()

    def _serve(self, gpu: str, lane: AnyLane) -> None:
        try:
            while not self._stopping.is_set():
                job = self._jobs.get_nowait()
                with self._watcher.job(job, gpu) as shown:
                    found = self._work(job, lane, Stoppable(shown, self._stopping))
                self._results.put(Finished(job, gpu, found))
        except (queue.Empty, Stopped):
            pass
        except BaseException as error:
            self._results.put(error)
        finally:
            self._results.put(None)
