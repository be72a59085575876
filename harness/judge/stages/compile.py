"""Compile: does the submission compile, and can the device load it?"""

from __future__ import annotations

from harness.judge.grading import Grading
from harness.judge.stages import interim
from harness.judge.stages.outcomes import judge_error, load_outcome
from harness.judge.steps import Place, Step
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
from harness.protocol.device import Load, Ready, Refusal
from harness.protocol.report import (
    CompileError,
    Outcome,
    RuntimeFault,
    Stage,
    TimeLimit,
    Unsupported,
)
from harness.protocol.request import ANSWER_SECONDS, Fault, Process


def disassembling(kernel: Kernel) -> Step[Disassembled | Outcome]:
    """Return the step that finds badges, loops and lines of the machine code."""
    return Step(
        Place.COMPILER,
        "disassemble",
        lambda steps: disassemble_kernel(steps.session.compiler, kernel),
    )


def loading(
    place: Place, kernel: Kernel | PtxProgram, mostly_checked: bool = True
) -> Step[Ready | Refusal | Fault]:
    """Return the step that loads the kernel in one of the processes that run it.

    A CPU device translates the PTX, which takes seconds for a large kernel, and needs no machine
    code. mostly_checked: the kernel is sanitized and counted, and hardly run otherwise.
    """
    request = Load(kernel=kernel, mostly_watched=mostly_checked)
    return Step(place, "load", lambda steps: steps.device(place).ask(request))


def compile_submission(grading: Grading) -> Outcome | None:
    """Compile to PTX, then to machine code; what needs only the PTX starts in between."""
    session, steps, seconds = grading.session, grading.steps, grading.options.compile_seconds
    grading.progress.begin(Stage.COMPILE, None)
    source, arch = grading.submission.source, session.arch
    signature = grading.problem.signature
    translate = Translate(source=source, arch=arch, seconds=seconds, signature=signature)
    program = session.compiler.ask(translate)
    if not isinstance(program, PtxProgram):
        return _compile_outcome(program, seconds)
    if not grading.scores:
        steps.start(loading(Place.DEVICE, program, grading.few_cases))
    elif not grading.quick or grading.few_cases:
        steps.start(loading(Place.CPU_SANITIZER, program))
    left = max(seconds - program.seconds, 1.0)
    request = Compile(source=source, arch=arch, seconds=left, signature=signature)
    compiled = session.compiler.ask(request)
    if not isinstance(compiled, Compiled):
        return _compile_outcome(compiled, seconds)
    grading.compiled = compiled
    grading.progress.found(interim.of_kernel(compiled.kernel.facts, compiled.warnings))
    if grading.scores or grading.few_cases:  # the processor has time for it, or it is surely needed
        steps.start(disassembling(compiled.kernel))
    return None


def load(grading: Grading) -> Outcome | None:
    """Load the kernel on the device that verifies it."""
    step = loading(Place.DEVICE, grading.kernel, grading.few_cases)
    ready = load_outcome_of(grading.steps.get(step))
    if not isinstance(ready, Ready):
        return ready
    grading.ready = ready
    return None


def disassemble(grading: Grading) -> Outcome | None:
    """Find what a kernel is made of that is correct and safe so far."""
    if grading.disassembled is None:
        found = grading.steps.get(disassembling(grading.kernel))
        if not isinstance(found, Disassembled):
            return found
        grading.disassembled = found
        grading.progress.found(interim.of_machine_code(found.kernel, found.warnings))
    return None


def compile_kernel(
    compiler: Process, source: str, arch: str, seconds: float = COMPILE_SECONDS
) -> Compiled | Outcome:
    """Compile for an architecture such as sm_90a. seconds: time limit of the compiler."""
    answer = compiler.ask(Compile(source=source, arch=arch, seconds=seconds))
    return answer if isinstance(answer, Compiled) else _compile_outcome(answer, seconds)


def disassemble_kernel(compiler: Process, kernel: Kernel) -> Disassembled | Outcome:
    """Find badges, loops and lines of a kernel's machine code."""
    request = Disassemble(kernel=kernel)
    answer = compiler.ask(request)
    if isinstance(answer, Disassembled):
        return answer
    return _compile_outcome(answer, request.time_limit)


def load_kernel(device: Process, kernel: Kernel) -> Ready | Outcome:
    """Load the kernel on a device; what keeps it from running there is a verdict."""
    return load_outcome_of(device.ask(Load(kernel=kernel)))


def load_outcome_of(answer: Ready | Refusal | Fault) -> Ready | Outcome:
    """Return the verdict for a kernel that could not be loaded."""
    if isinstance(answer, Refusal):
        return Unsupported(
            stage=Stage.COMPILE,
            message=answer.message,
            instruction=answer.instruction,
            at=answer.at,
        )
    return load_outcome(answer, ANSWER_SECONDS) if isinstance(answer, Fault) else answer


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
