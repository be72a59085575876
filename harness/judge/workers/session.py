"""A session whose processes are workers, and several sessions that share one device."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Literal

from harness.devices.available import arch_of, why_no_cuda
from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.workers.cores import Cores
from harness.judge.workers.gpu_lock import hold_gpu
from harness.judge.workers.isolation import Role
from harness.judge.workers.worker import Worker
from harness.protocol.compiler import DEFAULT_ARCH
from harness.protocol.device import Describe
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import DeviceInfo
from harness.protocol.request import Fault
from harness.protocol.timing import TimingWorkers
from problem.problem import MATRIX_MULTIPLICATION

Choice = Literal["auto", "cuda", "cpu"]

SESSIONS = 4
"""Sessions that share a GPU if there are cores for them. One measures while the others compile and
multiply on the processor. Between two measurements several verify and sanitize at the same time,
mostly on the processor. So with more of them the GPU waits less."""


@contextmanager
def open_session(choice: Choice, arch: str | None = None) -> Iterator[Session]:
    """Open a session on the device asked for; "auto" is the GPU if there is one.

    arch: the architecture that a CPU device stands for.

    Raises UsageError if there is no such device. If the device does not work, its first use raises
    JudgeFailure, so that compiling does not wait for it.
    """
    with open_sessions(choice, count=1, arch=arch) as (session,):
        yield session


@contextmanager
def open_sessions(
    choice: Choice,
    gpu: str | None = None,
    cores: Cores | None = None,
    count: int = SESSIONS,
    arch: str | None = None,
    on_gpu: str = MATRIX_MULTIPLICATION.on_gpu,
) -> Iterator[Sequence[Session]]:
    """Open sessions that take turns on one device; without cores for several, open one.

    gpu: the UUID of the GPU. cores: the cores for measuring, and for everything else. on_gpu: the
    module of the problem that is loaded ahead; measurements of another one wait until theirs is.
    """
    role = Role.CPU if arch else _role(choice)
    if arch and choice == "cuda":
        raise UsageError("an architecture can only be chosen for the CPU device")
    shared = _Shared(role is Role.CUDA, gpu, cores, arch or DEFAULT_ARCH, on_gpu)
    sessions = [WorkerSession(shared) for _ in range(1 if cores is None else count)]
    try:
        shared.start(sessions[0].device)
        yield sessions
    finally:
        with ThreadPoolExecutor(len(sessions) + 1, thread_name_prefix="closing") as threads:
            for close in (shared.close, *(session.renew for session in sessions)):
                threads.submit(close)


class _Shared:
    """The parts that all sessions on a device share. Only the holder of the exclusive lock asks the
    baseline and the checker."""

    def __init__(
        self, has_gpu: bool, gpu: str | None, cores: Cores | None, cpu_arch: str, on_gpu: str
    ) -> None:
        """has_gpu: the device is a GPU. cpu_arch: the architecture that a CPU device stands for.
        on_gpu: the module of the problem that is loaded ahead."""
        self._cpu_arch = cpu_arch
        self.has_gpu, self.gpu = has_gpu, gpu
        self.measuring = cores.measuring if cores else None
        self.helping = cores.helping if cores else None
        self.baseline, self.checker = Worker(Role.CUDA, gpu), Worker(Role.CHECKER, gpu)
        self._device: Worker | None = None
        self._described: Future[DeviceInfo | Fault] | None = None
        self._describe = Describe(on_gpu=on_gpu)
        self._threads = ThreadPoolExecutor(3, thread_name_prefix="describing")

    def start(self, device: Worker) -> None:
        """Start the shared processes, and ask the device in the background to describe itself.

        The baseline and the checker are asked, too: they load libraries and kernels for their
        answer, and a measurement would otherwise wait for that.
        """
        self._device = device
        self._described = self._threads.submit(device.ask, self._describe)
        if self.has_gpu:
            for worker in (self.baseline, self.checker):
                worker.start()
                worker.set_affinity(self.measuring)
                self._threads.submit(worker.ask, self._describe)

    @property
    def info(self) -> DeviceInfo:
        assert self._device is not None and self._described is not None
        found = self._described.result()
        if isinstance(found, Fault):  # perhaps the process was closed before it could answer
            self._described = self._threads.submit(self._device.ask, self._describe)
            found = self._described.result()
        if isinstance(found, Fault):
            raise JudgeFailure(found.message, found.details)
        return found if self.has_gpu else found.model_copy(update={"arch": self._cpu_arch})

    @property
    def arch(self) -> str:
        known = arch_of(self.gpu) if self.has_gpu else self._cpu_arch
        return known or self.info.arch

    def hold(self, progress: Progress, *, exclusive: bool) -> AbstractContextManager[None]:
        """Hold the lock on the GPU."""
        if not self.has_gpu:
            return nullcontext()
        return hold_gpu(self.info.uuid or self.info.name, progress, exclusive=exclusive)

    def close(self) -> None:
        # A question that has not been asked yet would start its process again.
        self._threads.shutdown(wait=False, cancel_futures=True)
        _close_all(self.baseline, self.checker)


class WorkerSession:
    """A Session whose processes are workers."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        has_gpu, gpu = shared.has_gpu, shared.gpu
        self.compiler = Worker(Role.COMPILER)
        self.device = Worker(Role.CUDA if has_gpu else Role.CPU, gpu)
        self.sanitizer = Worker(Role.SANITIZER if has_gpu else Role.CPU, gpu)
        self.cpu_sanitizer = Worker(Role.CPU) if has_gpu else None
        self._kernel = Worker(Role.CUDA, gpu)
        self.timing = self._timing_of(self._kernel) if has_gpu else None
        gpu_workers = (self.sanitizer, self._kernel) if has_gpu else ()
        self._started = (self.compiler, self.device, *gpu_workers)
        self._all = (*self._started, self.cpu_sanitizer or self.sanitizer)
        for worker in self._all:
            worker.set_affinity(shared.helping)

    @property
    def arch(self) -> str:
        return self._shared.arch

    @property
    def info(self) -> DeviceInfo:
        return self._shared.info

    @property
    def has_own_cores(self) -> bool:
        return self._shared.has_gpu and self._shared.measuring is not None

    def isolation(self) -> tuple[str, ...]:
        workers = (*self._all, self._shared.baseline, self._shared.checker)
        rules = {worker.role: worker.isolation for worker in workers if worker.isolation}
        return tuple(f"{role}: {rule}" for role, found in rules.items() for rule in found)

    def start(self, *, cpu_sanitizer: bool) -> None:
        for worker in self._all if cpu_sanitizer else self._started:
            worker.start()

    def renew(self) -> None:
        _close_all(*self._all)

    @contextmanager
    def shared_lock(self, progress: Progress) -> Iterator[None]:
        with self._shared.hold(progress, exclusive=False):
            try:
                yield
            finally:
                if self._shared.has_gpu:  # their contexts must be gone before others measure
                    _close_all(self.device, self.sanitizer)

    @contextmanager
    def exclusive_lock(self, progress: Progress) -> Iterator[None]:
        # Only this process: others would take processor time from a measurement.
        if self._shared.has_gpu:
            self._kernel.start()
        try:
            with self._shared.hold(progress, exclusive=True), self._on_measuring_cores():
                yield
        finally:
            self.renew()

    @contextmanager
    def _on_measuring_cores(self) -> Iterator[None]:
        """A context in which the processes on the GPU have the cores for measurements. They end
        before other sessions get the GPU."""
        workers = self.device, self._kernel
        try:
            for worker in workers:
                worker.set_affinity(self._shared.measuring)
            yield
        finally:
            _close_all(*workers, self.sanitizer)
            for worker in workers:
                worker.set_affinity(self._shared.helping)

    @contextmanager
    def timing_of_each(self, count: int) -> Iterator[Sequence[TimingWorkers]]:
        with ExitStack() as stack:
            kernels = [
                stack.enter_context(Worker(Role.CUDA, self._shared.gpu)) for _ in range(count)
            ]
            for kernel in kernels:
                kernel.set_affinity(self._shared.measuring)
            yield [self._timing_of(kernel) for kernel in kernels]

    def _timing_of(self, kernel: Worker) -> TimingWorkers:
        return TimingWorkers(kernel, self._shared.baseline, self._shared.checker)


def _close_all(*workers: Worker) -> None:
    """Close workers at the same time: the driver takes a while to let go of each."""
    with ThreadPoolExecutor(len(workers), thread_name_prefix="closing") as threads:
        for _ in threads.map(lambda worker: worker.close(), workers):
            pass


def _role(choice: Choice) -> Role:
    if choice == "cpu":
        return Role.CPU
    missing = why_no_cuda()
    if missing is None:
        return Role.CUDA
    if choice == "cuda":
        raise UsageError(f"this needs a GPU: {missing}")
    return Role.CPU
