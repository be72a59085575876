"""What gradings need open: compiler, device, CPU sanitizer, timing workers and the GPU's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

from harness.devices.available import why_no_cuda
from harness.errors import JudgeFailure, UsageError
from harness.progress import Progress
from harness.protocol.compiler import Compiler
from harness.protocol.device import BackgroundSanitizer, Describe, Device
from harness.protocol.request import Fault
from harness.protocol.timing import TimingWorkers
from harness.report import DeviceInfo
from harness.workers.cores import Cores
from harness.workers.cpu_sanitizer import CpuSanitizer
from harness.workers.gpu_lock import exclusive_gpu
from harness.workers.isolation import Role
from harness.workers.worker import Worker

Choice = Literal["auto", "cuda", "cpu"]


@dataclass(frozen=True, slots=True)
class Session:
    """What one grading after another is handed. A test hands in one that is made of fakes.

    cpu_sanitizer: works beside a device that does not see everything itself.
    timing: of a device whose times mean something. A device without is slow, too: it runs a sample
    of the ranked size.
    works_ahead: whether there are cores on which the CPU sanitizer may work at one submission while
    another is measured.
    isolation: what the operating system holds the workers to.
    prepare: starts the processes of a grading, which takes them as long as many a compilation.
    renew_compiler: ends the process that a submission has touched when it did not compile.
    renew: ends the processes that a submission has touched; others take their place.
    turn: inside, one grading has the device for itself, in processes that it is the first to touch.
    side_by_side: inside, so many kernels can be timed on the same matrices, each in a process of
    its own; in a turn.
    """

    info: DeviceInfo
    compiler: Compiler
    device: Device
    cpu_sanitizer: BackgroundSanitizer | None = None
    timing: TimingWorkers | None = None
    works_ahead: bool = False
    isolation: Callable[[], tuple[str, ...]] = tuple
    prepare: Callable[[], None] = lambda: None
    renew_compiler: Callable[[], None] = lambda: None
    renew: Callable[[], None] = lambda: None
    turn: Callable[[Progress], AbstractContextManager[None]] = lambda _: nullcontext()
    side_by_side: Callable[[int], AbstractContextManager[Sequence[TimingWorkers]]] | None = None


@contextmanager
def open_session(
    choice: Choice, gpu: str | None = None, cores: Cores | None = None
) -> Iterator[Session]:
    """On the device asked for; auto is the GPU where there is one. gpu: the UUID of that one.
    cores: for those who measure, and for the rest. Raises UsageError where there is no such device,
    JudgeFailure where it does not work."""
    role = _role(choice)
    compiler, device = Worker(Role.COMPILER), Worker(role, gpu)
    cpu_sanitizer = CpuSanitizer()
    baseline, newcomer = Worker(Role.CUDA, gpu), Worker(Role.CUDA, gpu)
    checker = Worker(Role.CHECKER, gpu)
    touched = (compiler, device, cpu_sanitizer.worker, newcomer)
    workers = (*touched, baseline, checker) if role is Role.CUDA else (compiler, device)
    measuring = (device, baseline, checker, newcomer)

    def isolation() -> tuple[str, ...]:
        rules = {worker.role: worker.isolation for worker in workers}
        return tuple(f"{role}: {rule}" for role, found in rules.items() for rule in found)

    def prepare() -> None:
        for worker in workers:
            worker.start()

    def renew() -> None:
        cpu_sanitizer.reset()
        for worker in touched:
            worker.close()

    @contextmanager
    def turn(progress: Progress) -> Iterator[None]:
        prepare()  # before its turn, so that the GPU need not wait for it
        lock = exclusive_gpu(info.uuid or info.name, progress)
        try:
            with lock if role is Role.CUDA else nullcontext():
                if cores is not None:
                    for worker in measuring:
                        worker.keep_to(cores.measuring)
                yield
        finally:
            renew()
            if cores is not None:
                for worker in measuring:
                    worker.keep_to(cores.helping)

    @contextmanager
    def side_by_side(count: int) -> Iterator[Sequence[TimingWorkers]]:
        with ExitStack() as stack:
            kernels = [stack.enter_context(Worker(Role.CUDA, gpu)) for _ in range(count)]
            if cores is not None:
                for kernel in kernels:
                    kernel.keep_to(cores.measuring)
            yield [TimingWorkers(kernel, baseline, checker, newcomer) for kernel in kernels]

    with ExitStack() as stack:
        for worker in workers:
            stack.enter_context(worker)
            if cores is not None:
                worker.keep_to(cores.helping)
        stack.callback(cpu_sanitizer.reset)
        prepare()
        described = device.ask(Describe())
        if isinstance(described, Fault):
            raise JudgeFailure(described.message, described.details)
        info = described
        scoring = role is Role.CUDA
        yield Session(
            info=info,
            compiler=compiler,
            device=device,
            cpu_sanitizer=cpu_sanitizer if scoring else None,
            timing=TimingWorkers(device, baseline, checker, newcomer) if scoring else None,
            works_ahead=scoring and cores is not None,
            isolation=isolation,
            prepare=prepare,
            renew_compiler=compiler.close,
            renew=renew,
            turn=turn,
            side_by_side=side_by_side if scoring else None,
        )


def _role(choice: Choice) -> Role:
    if choice == "cpu":
        return Role.CPU
    missing = why_no_cuda()
    if missing is None:
        return Role.CUDA
    if choice == "cuda":
        raise UsageError(f"cannot grade on a GPU: {missing}; use --device cpu for all but a score")
    return Role.CPU
