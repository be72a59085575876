"""Compile: does it compile, and can the device take it?"""

from __future__ import annotations

from collections.abc import Callable

from harness.judge.stages.outcomes import judge_error, load_outcome
from harness.protocol.compiler import (
    COMPILE_SECONDS,
    Compile,
    Compiled,
    Compiler,
    Disassemble,
    Disassembled,
    Kernel,
    PtxProgram,
    Translate,
)
from harness.protocol.device import Device, Load, Ready, Refusal
from harness.protocol.report import (
    CompileError,
    Outcome,
    RuntimeFault,
    Stage,
    TimeLimit,
    Unsupported,
)
from harness.protocol.request import Fault


def compile_kernel(
    compiler: Compiler,
    source: str,
    arch: str,
    seconds: float = COMPILE_SECONDS,
    ahead: Callable[[PtxProgram], None] | None = None,
) -> Compiled | Outcome:
    """Compile for an architecture such as sm_90a; whatever becomes of it is a verdict.

    seconds: time limit of the compiler. ahead: is given the PTX before there is machine code of it.
    """
    if ahead is not None:
        program = compiler.ask(Translate(source=source, arch=arch, seconds=seconds))
        if not isinstance(program, PtxProgram):
            return _outcome(program, seconds)
        ahead(program)
    answer = compiler.ask(Compile(source=source, arch=arch, seconds=seconds))
    return answer if isinstance(answer, Compiled) else _outcome(answer, seconds)


def disassemble_kernel(compiler: Compiler, kernel: Kernel) -> Disassembled | Outcome:
    """Its badges, loops and lines, which nobody needs of a kernel that is wrong."""
    request = Disassemble(kernel=kernel)
    answer = compiler.ask(request)
    if isinstance(answer, Disassembled):
        return answer
    return _outcome(answer, request.time_limit)


def _outcome(answer: CompileError | RuntimeFault | Fault, seconds: float) -> Outcome:
    """Of what did not become machine code that can be read."""
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


def load_kernel(device: Device, kernel: Kernel, *, mostly_watched: bool = False) -> Ready | Outcome:
    """Hand the kernel to the device; what keeps it from running there is a verdict."""
    request = Load(kernel=kernel, mostly_watched=mostly_watched)
    ready = device.ask(request)
    if isinstance(ready, Refusal):
        return Unsupported(
            stage=Stage.COMPILE,
            message=ready.message,
            instruction=ready.instruction,
            at=ready.at,
        )
    if isinstance(ready, Fault):
        return load_outcome(ready, request.time_limit)
    return ready
