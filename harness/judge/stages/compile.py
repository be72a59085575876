"""Compile: does the submission compile, and can the device load it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.judge import figures
from harness.judge.grading import Grading
from harness.judge.stages.outcomes import judge_error, load_outcome
from harness.judge.steps import Executor, Step, Steps
from harness.protocol.compiler import (
    COMPILE_SECONDS,
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
    Outcome,
    RuntimeFault,
    Stage,
    TimeLimit,
    Unsupported,
)
from harness.protocol.request import Fault, Process


def _compiling(
    grading: Grading,
) -> Step[Compiled | CompileError | RuntimeFault | Unsupported | Fault]:
    """Return the step that makes machine code of the PTX."""
    program = grading.program
    assert program is not None, "the source has not been translated"
    request = Compile(
        source=grading.submission.source,
        arch=grading.session.arch,
        seconds=max(grading.options.compile_seconds - program.seconds, 1.0),
        signature=grading.problem.signature,
    )
    return Step(Executor.COMPILER, "compile", lambda steps: steps.session.compiler.ask(request))


def disassembling(grading: Grading) -> Step[Disassembled | Outcome]:
    """Return the step that finds badges, loops and lines of the machine code."""

    def run(steps: Steps) -> Disassembled | Outcome:
        compiled = grading.compiled or steps.get(_compiling(grading))
        if not isinstance(compiled, Compiled):
            return _compile_outcome(compiled, grading.options.compile_seconds)
        request = Disassemble(kernel=compiled.kernel)
        answer = steps.session.compiler.ask(request)
        if isinstance(answer, Disassembled):
            return answer
        return _compile_outcome(answer, request.seconds)

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


def compile_submission(grading: Grading) -> Outcome | None:
    """Compile to PTX, then to machine code; what needs only the PTX starts in between. A CPU device
    loads and sanitizes the PTX while ptxas runs."""
    session, steps, seconds = grading.session, grading.steps, grading.options.compile_seconds
    grading.progress.begin(Stage.COMPILE, None)
    source, arch = grading.submission.source, session.arch
    signature = grading.problem.signature
    translate = Translate(source=source, arch=arch, seconds=seconds, signature=signature)
    program = session.compiler.ask(translate)
    if not isinstance(program, PtxProgram):
        return _compile_outcome(program, seconds)
    if not grading.scores:
        steps.start(loading(Executor.DEVICE, program, grading.few_cases))
    elif not grading.quick or grading.few_cases:
        steps.start(loading(Executor.CPU_SANITIZER, program))
    grading.program = program
    if grading.scores:
        return await_machine_code(grading)
    steps.start(_compiling(grading))
    if grading.few_cases:
        steps.start(disassembling(grading))
    return None


def await_machine_code(grading: Grading) -> Outcome | None:
    """Wait for the machine code of a kernel, and begin to disassemble it."""
    if grading.compiled is not None:
        return None
    compiled = grading.steps.get(_compiling(grading))
    if not isinstance(compiled, Compiled):
        return _compile_outcome(compiled, grading.options.compile_seconds)
    grading.compiled = compiled
    grading.progress.found(_about_kernel(compiled.kernel.facts, compiled.warnings))
    if grading.scores or grading.few_cases:  # the processor has time for it, or it is surely needed
        grading.steps.start(disassembling(grading))
    return None


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


def load(grading: Grading) -> Outcome | None:
    """Load the kernel on the device that verifies it. An error of the compiler comes first."""
    step = loading(Executor.DEVICE, grading.loadable, grading.few_cases)
    ready = load_outcome(grading.steps.get(step))
    if not isinstance(ready, Ready):
        return await_machine_code(grading) or ready
    grading.ready = ready
    return None


def start_disassembling(grading: Grading) -> None:
    """Begin to disassemble a kernel that is correct: the processor is not busy while it is
    sanitized without a GPU."""
    if grading.failure is None:
        grading.steps.start(disassembling(grading))


def disassemble(grading: Grading) -> Outcome | None:
    """Disassemble a kernel that is correct and safe so far."""
    if grading.disassembled is None:
        found = grading.steps.get(disassembling(grading))
        if not isinstance(found, Disassembled):
            return found
        grading.disassembled = found
        badges = ", ".join(badge.value for badge in found.kernel.badges)
        grading.progress.found([badges, *_about_warnings(found.warnings)])
    return None


def compile_kernel(
    compiler: Process, source: str, arch: str, seconds: float = COMPILE_SECONDS
) -> Compiled | Outcome:
    """Compile for an architecture such as sm_90a. seconds: time limit of the compiler."""
    answer = compiler.ask(Compile(source=source, arch=arch, seconds=seconds))
    return answer if isinstance(answer, Compiled) else _compile_outcome(answer, seconds)


def _compile_outcome(
    answer: CompileError | RuntimeFault | Unsupported | Fault, seconds: float
) -> Outcome:
    """Return the verdict for a source that did not become machine code."""
    if not isinstance(answer, Fault):
        return answer
    if answer.cause == "time-limit" or answer.signal == "SIGXCPU":
        return TimeLimit(
            stage=Stage.COMPILE,
            message=f"the compiler did not end within {seconds:g} s",
            seconds=seconds,
        )
    if answer.signal in ("SIGSEGV", "SIGABRT", "SIGBUS") or "MemoryError" in answer.message:
        message = f"the compiler ran out of memory or crashed on this source ({answer.message})"
        return CompileError(stage=Stage.COMPILE, message=message)
    return judge_error(answer, Stage.COMPILE)
