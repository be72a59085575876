"""Compile: does it compile, and can the device take it?"""

from __future__ import annotations

from harness.protocol.compiler import COMPILE_SECONDS, Compile, Compiled, Compiler, Kernel
from harness.protocol.device import Device, Load, Ready, Refusal
from harness.protocol.request import Fault
from harness.report import CompileError, Outcome, Stage, TimeLimit, Unsupported
from harness.stages.outcomes import judge_error, load_outcome


def compile_kernel(
    compiler: Compiler, source: str, arch: str, seconds: float = COMPILE_SECONDS
) -> Compiled | Outcome:
    """Compile for an architecture such as sm_90a; whatever becomes of it is a verdict.

    seconds: time limit of the compiler.
    """
    answer = compiler.ask(Compile(source=source, arch=arch, seconds=seconds))
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
