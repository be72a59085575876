"""Check which parts of the judge work on this machine, each with the starter."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.devices.available import why_no_cuda
from harness.judge.grading import launch_inputs
from harness.judge.session import Session
from harness.protocol.compiler import Compile, Compiled, Disassemble, Disassembled, Kernel
from harness.protocol.device import Load, Ready, Run, Sanitize, Sanitized
from harness.protocol.report import DeviceKind, Tool
from harness.protocol.request import Fault
from harness.protocol.timing import OpenBuffers, ShareBuffers
from problem import starter
from problem.cases import Case, Shape
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import compare

CASE = Case(Shape(33, 40, 50))
_INPUTS = launch_inputs(MATRIX_MULTIPLICATION, CASE, CASE.draw(1))
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    works: bool
    message: str
    """The result, or advice."""
    needed: bool = True
    """Whether the judge does not work without it."""


def check_parts(session: Session) -> Iterator[Check]:
    """Check each part in turn, except those that need a part that does not work."""
    compiled = session.compiler.ask(Compile(source=starter.text(), arch=session.arch))
    if not isinstance(compiled, Compiled):
        yield Check("compiler", False, compiled.message)
        return
    yield Check("compiler", True, f"NVRTC {compiled.nvrtc}")
    yield _disassembler(session, compiled.kernel)
    works = _run(session, compiled.kernel)
    yield works
    if works.works:
        yield from _sanitizers(session, compiled.kernel)
    missing = why_no_cuda()
    if session.info.kind is DeviceKind.CUDA:
        yield _timing(session)
        yield from (Check("note", True, message) for message in session.info.notes)
    else:
        message = missing or "graded on the CPU device, as asked"
        yield Check("scores", False, f"{message}; verdicts need none", needed=False)
    rules = session.isolation()
    yield Check(
        "isolation",
        bool(rules),
        "; ".join(rules) or "this system restricts workers in no way: see SECURITY.md",
    )


def _disassembler(session: Session, kernel: Kernel) -> Check:
    found = session.compiler.ask(Disassemble(kernel=kernel))
    if not isinstance(found, Disassembled):
        return Check("disassembler", False, found.message)
    reads = bool(found.kernel.instructions)
    message = "nvdisasm reads the machine code" if reads else "install nvidia-cuda-nvdisasm"
    return Check("disassembler", reads, message)


def _run(session: Session, kernel: Kernel) -> Check:
    """Check whether the device multiplies correctly."""
    ready = session.device.ask(Load(kernel=kernel))
    if not isinstance(ready, Ready):
        return Check("device", False, ready.message)
    finished = session.device.ask(Run(inputs=_INPUTS, seconds=SECONDS))
    if isinstance(finished, Fault):
        return Check("device", False, finished.message)
    right = compare(*CASE.draw(1), finished.output).passed
    return Check("device", right, session.info.name if right else "its product is wrong")


def _sanitizers(session: Session, kernel: Kernel) -> Iterator[Check]:
    request = Sanitize(launches=(_INPUTS,), tools=tuple(Tool), seconds=SECONDS)
    session.sanitizer.ask(Load(kernel=kernel))
    answer = session.sanitizer.ask(request)
    if not isinstance(answer, Sanitized):
        yield Check("sanitizers", False, answer.message)
        return
    for run in answer.runs:
        clean = run.status == "clean"
        yield Check(run.tool, clean, answer.program if clean else run.message or run.status)


def _timing(session: Session) -> Check:
    """Check whether processes can share GPU memory, and the baseline can be launched on it."""
    assert session.timing is not None
    on_gpu = MATRIX_MULTIPLICATION.on_gpu
    arguments = MATRIX_MULTIPLICATION.arguments(CASE.shape)
    shared = session.timing.checker.ask(ShareBuffers(on_gpu=on_gpu, arguments=arguments))
    if isinstance(shared, Fault):
        return Check("scores", False, shared.message)
    opened = session.timing.baseline.ask(
        OpenBuffers(buffers=shared, baseline=on_gpu, seconds=SECONDS)
    )
    if isinstance(opened, Fault):
        return Check("scores", False, opened.message)
    baseline = f"{MATRIX_MULTIPLICATION.baseline} {session.info.baseline_version}"
    return Check("scores", True, f"{baseline}, in a process of its own")
