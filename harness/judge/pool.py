"""Many gradings on several GPUs: one queue of jobs, and several lanes for each GPU.

The lanes of a GPU take turns on it. While one measures, the others compile, sanitize on the CPU
device and multiply on the processor, on cores of their own. A GPU has one lane if there are too few
cores for that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar

from harness.judge.progress import Progress, Stoppable
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
        free: SimpleQueue[tuple[str, AnyLane]] = SimpleQueue()
        for lane in lanes:
            free.put(lane)
        stopping = threading.Event()

        def finished(job: Job) -> Finished[Job, Found]:
            gpu, lane = free.get()
            try:
                with watcher.job(job, gpu) as shown:
                    return Finished(job, gpu, work(job, lane, Stoppable(shown, stopping)))
            finally:
                free.put((gpu, lane))

        threads = ThreadPoolExecutor(len(lanes), thread_name_prefix="lane")
        futures = [threads.submit(finished, job) for job in jobs]

        def stop() -> None:
            stopping.set()
            threads.shutdown(wait=False, cancel_futures=True)
            if not all(future.done() for future in futures):
                for _, lane in lanes:
                    lane.stop()
            threads.shutdown()

        def results() -> Iterable[Finished[Job, Found]]:
            for future in as_completed(futures):
                if stopping.is_set():
                    return
                yield future.result()

        stack.callback(stop)
        yield chain(lost, results())


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
