"""Compile: does it compile, and can the device take it?"""

from __future__ import annotations

from harness.compiling.kernel import Compile, Compiled, Kernel
from harness.devices.device import Device, Fault, Ready, Refusal
from harness.report import CompileError, JudgeError, Outcome, Stage, TimeLimit, Unsupported
from harness.stages.verify import fault_outcome
from harness.workers.remote import RemoteCompiler
from problem.cases import RANKED

COMPILE_SECONDS = 60.0


def compile_kernel(
    compiler: RemoteCompiler, source: str, arch: str, seconds: float = COMPILE_SECONDS
) -> Compiled | Outcome:
    """Compile for an architecture such as sm_90a; whatever becomes of it is a verdict.

    seconds: time limit of the compiler.
    """
    answer = compiler.compile(Compile(source=source, arch=arch), seconds)
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
    return JudgeError(stage=Stage.COMPILE, message=answer.message, details=answer.details)


def load_kernel(device: Device, kernel: Kernel, seconds: float) -> Ready | Outcome:
    """Hand the kernel to the device; what keeps it from running there is a verdict.

    seconds: time limit of one launch.
    """
    ready = device.load(kernel)
    if isinstance(ready, Refusal):
        return Unsupported(
            stage=Stage.COMPILE,
            message=ready.message,
            instruction=ready.instruction,
            at=ready.at,
        )
    if isinstance(ready, Fault):
        return fault_outcome(ready, RANKED.shape, seconds)
    return ready
