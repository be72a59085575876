"""Compile: does the submission compile, and can the device load it?"""

from collections.abc import Iterator, Sequence

from harness.judge import figures
from harness.judge.grading import Grading
from harness.judge.stages.outcomes import Ended, T, judge_error, loaded
from harness.judge.steps import Executor, Step, Steps
from harness.protocol.compiler import (
    Compile,
    Compiled,
    Disassemble,
    Disassembled,
    Kernel,
    PtxProgram,
    Translate,
)
from harness.protocol.device import Load, Ready
from harness.protocol.report import (
    CompileError,
    Diagnostic,
    KernelFacts,
    RuntimeFault,
    Stage,
    TimeLimit,
    Unsupported,
)
from harness.protocol.request import Fault, Process


def _compiling(grading: Grading) -> Step[Compiled]:
    """Return the step that makes machine code of the PTX."""
    program = grading.program
    assert program is not None, "the source has not been translated"
    request = Compile(
        source=grading.submission.source,
        arch=grading.session.arch,
        seconds=max(grading.options.compile_seconds - program.seconds, 1.0),
        signature=grading.problem.signature,
    )

    def run(steps: Steps) -> Compiled:
        return _result(steps.session.compiler.ask(request), grading.options.compile_seconds)

    return Step(Executor.COMPILER, "compile", run)


def disassembling(grading: Grading) -> Step[Disassembled]:
    """Return the step that finds badges, loops and lines of the machine code."""

    def run(steps: Steps) -> Disassembled:
        compiled = grading.compiled or steps.get(_compiling(grading))
        request = Disassemble(kernel=compiled.kernel)
        return _result(steps.session.compiler.ask(request), request.seconds)

    return Step(Executor.COMPILER, "disassemble", run)


def loading(
    executor: Executor, kernel: Kernel | PtxProgram, mostly_watched: bool = True
) -> Step[Ready | Unsupported | Fault]:
    """Return the step that loads the kernel in one of the processes that run it.

    A CPU device translates the PTX, which takes seconds for a large kernel, and needs no machine
    code. mostly_watched: the kernel is mainly sanitized and counted.
    """
    request = Load(kernel=kernel, mostly_watched=mostly_watched)
    return Step(executor, "load", lambda steps: steps.device(executor).ask(request))


def compile_submission(grading: Grading) -> None:
    """Compile to PTX, then to machine code; what needs only the PTX starts in between. A CPU device
    loads and sanitizes the PTX while ptxas runs."""
    session, steps, seconds = grading.session, grading.steps, grading.options.compile_seconds
    grading.progress.begin(Stage.COMPILE, None)
    source, arch = grading.submission.source, session.arch
    signature = grading.problem.signature
    translate = Translate(source=source, arch=arch, seconds=seconds, signature=signature)
    program: PtxProgram = _result(session.compiler.ask(translate), seconds)
    if not grading.has_gpu:
        steps.start(loading(Executor.DEVICE, program, grading.few_cases))
    elif not grading.quick or grading.few_cases:
        steps.start(loading(Executor.CPU_SANITIZER, program))
    grading.program = program
    if grading.has_gpu:
        await_machine_code(grading)
        return
    steps.start(_compiling(grading))
    if grading.few_cases:
        steps.start(disassembling(grading))


def take_machine_code(grading: Grading) -> None:
    """Take the machine code if it is ready. An error of ptxas ends a verification early."""
    if grading.compiled is None and grading.steps.is_done(_compiling(grading)):
        await_machine_code(grading)


def await_machine_code(grading: Grading) -> None:
    """Wait for the machine code of a kernel, and begin to disassemble it."""
    if grading.compiled is not None:
        return
    compiled = grading.compiled = grading.steps.get(_compiling(grading))
    grading.progress.found(_about_kernel(compiled.kernel.facts, compiled.warnings))
    # The processor has time for it, or it is surely needed.
    if grading.has_gpu or grading.few_cases:
        grading.steps.start(disassembling(grading))


def _about_kernel(kernel: KernelFacts, warnings: Sequence[Diagnostic]) -> Iterator[str]:
    """Describe the compiled kernel for a view that follows the grading."""
    room = kernel.occupancy
    occupied = f"{room.fraction:.0%} occupancy, limited by {room.limited_by}"
    yield f"{figures.resources(kernel.resources)}; {occupied}"
    yield from _about_warnings(warnings)


def _about_warnings(warnings: Sequence[Diagnostic]) -> Iterator[str]:
    for warning in warnings:
        where = f"line {warning.line}: " if warning.line else ""
        yield f"{where}{warning.severity}: {warning.message}"


def load(grading: Grading) -> None:
    """Load the kernel on the device that verifies it."""
    step = loading(Executor.DEVICE, grading.loadable, grading.few_cases)
    try:
        grading.ready = loaded(grading.steps.get(step))
    except Ended:
        await_machine_code(grading)  # an error of the compiler comes first
        raise


def disassemble(grading: Grading) -> None:
    """Disassemble a kernel that is correct and safe so far."""
    if grading.disassembled is None:
        found = grading.disassembled = grading.steps.get(disassembling(grading))
        badges = ", ".join(badge.value for badge in found.kernel.badges)
        grading.progress.found([badges, *_about_warnings(found.warnings)])


def compile_kernel(compiler: Process, request: Compile) -> Compiled:
    """Return the compiled source. Raises Ended if it cannot be compiled."""
    return _result(compiler.ask(request), request.seconds)


def _result(answer: T | CompileError | RuntimeFault | Unsupported | Fault, seconds: float) -> T:
    """Return the compiler's result. Raises Ended if the compiler failed."""
    if isinstance(answer, CompileError | RuntimeFault | Unsupported):
        raise Ended(answer)
    if not isinstance(answer, Fault):
        return answer
    if answer.cause == "time-limit" or answer.signal == "SIGXCPU":
        message = f"the compiler did not end within {seconds:g} s"
        raise Ended(TimeLimit(stage=Stage.COMPILE, message=message, seconds=seconds))
    if answer.signal in ("SIGSEGV", "SIGABRT", "SIGBUS") or "MemoryError" in answer.message:
        message = f"the compiler ran out of memory or crashed on this source ({answer.message})"
        raise Ended(CompileError(stage=Stage.COMPILE, message=message))
    raise Ended(judge_error(answer, Stage.COMPILE))
