"""What gradings need open: compiler, device, CPU sanitizer, timing workers and the GPU's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Event
from typing import Literal

from harness.devices.available import arch_of, why_no_cuda
from harness.judge.progress import Progress
from harness.judge.workers.cores import Cores
from harness.judge.workers.cpu_sanitizer import CpuSanitizer
from harness.judge.workers.gpu_lock import Use, hold_gpu, share_gpu_if_free
from harness.judge.workers.isolation import Role
from harness.judge.workers.worker import Worker
from harness.protocol import background
from harness.protocol.compiler import DEFAULT_ARCH, Compiler
from harness.protocol.device import BackgroundSanitizer, Describe, Device
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import DeviceInfo, Tool
from harness.protocol.request import Fault
from harness.protocol.timing import (
    OpenKernels,
    OpenLibraries,
    OpenSanitizers,
    SanitizersOpen,
    StartSanitizers,
    TimingWorkers,
)

Choice = Literal["auto", "cuda", "cpu"]


@dataclass(frozen=True, slots=True)
class Session:
    """What one grading after another is handed. A test hands in one that is made of fakes.

    arch: what is compiled for it.
    describe: says what the device is, which it may take a while to find out. Raises JudgeFailure
    where it does not work.
    cpu_sanitizer: works beside a device that does not see everything itself.
    timing: of a device whose times mean something. A device without is slow, too: it runs a sample
    of the ranked size.
    works_ahead: whether there are cores on which the CPU sanitizer may work at one submission while
    another is measured.
    isolation: what the operating system holds the workers to.
    prepare: starts the processes of a grading, the GPU's sanitizers among them, which takes them as
    long as many a compilation; and the CPU sanitizer's, if that will surely have something to do.
    renew_compiler: ends the process that a submission has touched when it did not compile, or when
    nobody waits for its machine code.
    renew: ends the processes that a submission has touched; others take their place.
    company: inside, a grading has the device together with others that measure nothing, either; in
    a process that it is the first to touch, and that is gone afterwards.
    turn: inside, one grading has the device for itself, in processes that it is the first to touch.
    side_by_side: inside, so many kernels can be timed on the same matrices, each in a process of
    its own; in a turn.
    """

    arch: str
    describe: Callable[[], DeviceInfo]
    compiler: Compiler
    device: Device
    cpu_sanitizer: BackgroundSanitizer | None = None
    timing: TimingWorkers | None = None
    works_ahead: bool = False
    isolation: Callable[[], tuple[str, ...]] = tuple
    prepare: Callable[[tuple[Tool, ...], bool], None] = lambda *_: None
    renew_compiler: Callable[[], None] = lambda: None
    renew: Callable[[], None] = lambda: None
    company: Callable[[Progress], AbstractContextManager[None]] = lambda _: nullcontext()
    turn: Callable[[Progress], AbstractContextManager[None]] = lambda _: nullcontext()
    side_by_side: Callable[[int], AbstractContextManager[Sequence[TimingWorkers]]] | None = None

    @property
    def info(self) -> DeviceInfo:
        return self.describe()


LANES = 4
"""Submissions that a GPU is at, where there are cores for that: one is measured, and the others are
compiled and get their references meanwhile. Between two measurements several are verified and
sanitized at once, mostly by the processor, and the more there are, the less of it the GPU waits."""


@contextmanager
def open_session(
    choice: Choice,
    gpu: str | None = None,
    cores: Cores | None = None,
    *,
    compiles_first: bool = False,
) -> Iterator[Session]:
    """On the device asked for; auto is the GPU where there is one. gpu: the UUID of that one.
    cores: for those who measure, and for the rest. compiles_first: what is done first is compiling,
    so nobody waits until the device has said what it is, nor learns here that it does not work.
    Raises UsageError where there is no such device, JudgeFailure where it does not work."""
    with open_lanes(choice, gpu, cores, lanes=1) as (session,):
        if not compiles_first:
            session.describe()
        yield session


@contextmanager
def open_lanes(
    choice: Choice, gpu: str | None = None, cores: Cores | None = None, lanes: int = LANES
) -> Iterator[Sequence[Session]]:
    """As `open_session`: sessions that take turns on one device; without cores for them, one. Who
    asks them what it is learns whether it works."""
    role = _role(choice)
    with ExitStack() as stack:
        devices = [
            stack.enter_context(Worker(role, gpu)) for _ in range(1 if cores is None else lanes)
        ]
        common = _Common(
            scoring=role is Role.CUDA,
            gpu=gpu,
            cores=cores,
            describe=_describing(devices[0]),
            baseline=stack.enter_context(Worker(Role.CUDA, gpu)),
            checker=stack.enter_context(Worker(Role.CHECKER, gpu)),
        )
        for worker in (common.baseline, common.checker) if common.scoring else ():
            worker.start()
            if cores is not None:
                worker.keep_to(cores.measuring)
        stack.callback(_close, (*devices, common.baseline, common.checker))
        sessions = [stack.enter_context(_Lane(common, device).open()) for device in devices]
        stack.callback(background.begin, _close, (common.baseline, common.checker))
        yield sessions


@dataclass(frozen=True, slots=True)
class _Common:
    """What all lanes of a device share: nobody asks baseline and checker but in a turn."""

    scoring: bool
    """Whether its times mean something."""
    gpu: str | None
    cores: Cores | None
    describe: Callable[[], DeviceInfo]
    baseline: Worker
    checker: Worker

    @property
    def arch(self) -> str:
        known = arch_of(self.gpu) if self.scoring else DEFAULT_ARCH
        return known or self.describe().arch

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Meanwhile those beside whom kernels are timed create their contexts, if they have none.
        A kernel's own is created in its turn, and timed."""
        with ThreadPoolExecutor(2, thread_name_prefix="opening") as threads:
            if self.scoring:
                threads.submit(self.baseline.ask, OpenLibraries())
                threads.submit(self.checker.ask, OpenKernels())
            yield

    def hold(self, use: Use, progress: Progress) -> AbstractContextManager[None]:
        return hold_gpu(self._gpu_name, use, progress) if self.scoring else nullcontext()

    def share_if_free(self) -> AbstractContextManager[bool]:
        return share_gpu_if_free(self._gpu_name)

    @property
    def _gpu_name(self) -> str:
        info = self.describe()
        return info.uuid or info.name


def _describing(device: Worker) -> Callable[[], DeviceInfo]:
    """Asks the device at once what it is, and waits for the answer only where it is wanted."""
    asked = background.begin(device.ask, Describe())

    def answer() -> DeviceInfo:
        described = asked.result()
        if isinstance(described, Fault):
            raise JudgeFailure(described.message, described.details)
        return described

    return answer


class _Lane:
    """The processes of one lane."""

    def __init__(self, common: _Common, device: Worker) -> None:
        self._common = common
        self._compiler, self._cpu_sanitizer = Worker(Role.COMPILER), CpuSanitizer()
        self._device, self._ahead = device, _Ahead(common, device)
        self._kernel = Worker(Role.CUDA, common.gpu)
        self._on_device = (device, self._kernel) if common.scoring else (device,)
        self._always = (self._compiler, *self._on_device)
        self._touched = (*self._always, self._cpu_sanitizer.worker)

    @contextmanager
    def open(self) -> Iterator[Session]:
        scoring, cores = self._common.scoring, self._common.cores
        if cores is not None:
            for worker in self._touched:
                worker.keep_to(cores.helping)
        self._prepare()
        try:
            yield Session(
                arch=self._common.arch,
                describe=self._common.describe,
                compiler=self._compiler,
                device=self._device,
                cpu_sanitizer=self._cpu_sanitizer if scoring else None,
                timing=self._timing(self._kernel) if scoring else None,
                works_ahead=scoring and cores is not None,
                isolation=self._isolation,
                prepare=self._prepare,
                renew_compiler=self._compiler.close,
                renew=self._renew,
                company=self._company,
                turn=self._turn,
                side_by_side=self._side_by_side if scoring else None,
            )
        finally:
            self._renew()

    def _isolation(self) -> tuple[str, ...]:
        workers = (*self._touched, self._common.baseline, self._common.checker)
        rules = {worker.role: worker.isolation for worker in workers if worker.isolation}
        return tuple(f"{role}: {rule}" for role, found in rules.items() for rule in found)

    def _renew(self) -> None:
        self._ahead.end()
        self._cpu_sanitizer.reset()
        _close(self._touched)

    def _prepare(self, tools: tuple[Tool, ...] = (), beside: bool = False) -> None:
        self._ahead.wait_for_tools()
        for worker in self._always:
            worker.start()
        if self._common.scoring and beside:
            self._cpu_sanitizer.worker.start()
        if self._common.scoring and tools:
            self._ahead.begin(tools)

    @contextmanager
    def _company(self, progress: Progress) -> Iterator[None]:
        # Before it has the device, which need not wait for it then.
        self._prepare()
        self._ahead.wait_for_contexts()
        with self._common.hold(Use.SHARED, progress), self._common.opening():
            try:
                yield
            finally:
                self._device.close()

    @contextmanager
    def _turn(self, progress: Progress) -> Iterator[None]:
        self._ahead.end()
        # Those who measure, and nobody else: whoever is at starting takes the processor's time.
        if self._common.scoring:
            self._kernel.start()
        try:
            with self._common.hold(Use.ALONE, progress), self._at_measuring():
                yield
        finally:
            self._renew()

    @contextmanager
    def _at_measuring(self) -> Iterator[None]:
        """Inside, its processes have the cores of those who measure. They end before others have
        the device."""
        cores = self._common.cores
        try:
            if cores is not None:
                for worker in self._on_device:
                    worker.keep_to(cores.measuring)
            yield
        finally:
            _close(self._on_device)
            if cores is not None:
                for worker in self._on_device:
                    worker.keep_to(cores.helping)

    @contextmanager
    def _side_by_side(self, count: int) -> Iterator[Sequence[TimingWorkers]]:
        cores = self._common.cores
        with ExitStack() as stack:
            kernels = [
                stack.enter_context(Worker(Role.CUDA, self._common.gpu)) for _ in range(count)
            ]
            if cores is not None:
                for kernel in kernels:
                    kernel.keep_to(cores.measuring)
            yield [self._timing(kernel) for kernel in kernels]

    def _timing(self, kernel: Worker) -> TimingWorkers:
        return TimingWorkers(kernel, self._common.baseline, self._common.checker)


def _close(workers: Sequence[Worker]) -> None:
    """All at once: the driver takes a while to let go of each."""
    with ThreadPoolExecutor(len(workers), thread_name_prefix="closing") as threads:
        for _ in threads.map(lambda worker: worker.close(), workers):
            pass


class _Ahead:
    """What a grading needs of a GPU, made ready while its kernel is compiled: the tools are
    started, and contexts created, unless somebody measures who has no cores to itself. The driver
    creates one after the other, whoever asks."""

    def __init__(self, common: _Common, device: Worker) -> None:
        self._common, self._device = common, device
        self._starting: Future[object] | None = None
        self._opening: Future[None] | None = None
        self._ended = Event()

    def begin(self, tools: tuple[Tool, ...]) -> None:
        self.end()
        self._ended.clear()
        request = StartSanitizers(tools=tools)
        self._starting = background.begin(self._device.ask, request)
        self._opening = background.begin(self._open, self._starting)

    def wait_for_tools(self) -> None:
        """Nobody may ask the device for anything before it has started them."""
        if self._starting is not None:
            wait([self._starting])

    def wait_for_contexts(self) -> None:
        """Where others use the device meanwhile."""
        if self._opening is not None and self._common.cores is not None:
            wait([self._opening], _OPEN_SECONDS)

    def end(self) -> None:
        """Ask nobody for anything more."""
        self._ended.set()
        self.wait_for_tools()
        if self._opening is not None:
            wait([self._opening])

    def _open(self, starting: Future[object]) -> None:
        wait([starting])
        if self._ended.is_set():
            return
        if self._common.cores is not None:
            self._open_tools()
            return
        with self._common.share_if_free() as is_free:
            if is_free:
                with self._common.opening():
                    self._open_tools()

    def _open_tools(self) -> None:
        while not (self._ended.wait(_LOOK_AGAIN_SECONDS) or self._tools_are_open()):
            pass

    def _tools_are_open(self) -> bool:
        answer = self._device.ask(OpenSanitizers())
        return not isinstance(answer, SanitizersOpen) or answer.all


_LOOK_AGAIN_SECONDS = 0.05

_OPEN_SECONDS = 30.0
"""Tools that have no contexts by then create them while others wait for the device."""


def _role(choice: Choice) -> Role:
    if choice == "cpu":
        return Role.CPU
    missing = why_no_cuda()
    if missing is None:
        return Role.CUDA
    if choice == "cuda":
        raise UsageError(f"this needs a GPU: {missing}")
    return Role.CPU
