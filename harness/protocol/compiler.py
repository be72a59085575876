"""Requests to the compiler, and compiled submissions."""

from pydantic import PositiveFloat

from harness.protocol.report import (
    CompileError,
    Diagnostic,
    DisassembledKernel,
    KernelFacts,
    RuntimeFault,
    Unsupported,
    Value,
)
from harness.protocol.request import Request
from problem.launcher import LaunchLine
from problem.signature import SIGNATURE, Signature

DEFAULT_ARCH = "sm_90a"
"""The architecture if there is no GPU: the H100's, with its own instructions (wgmma)."""

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
"""The architectures from the oldest to the newest: T4 and GeForce 20, A100, GeForce 30, GeForce 40,
H100, B200, B300, GeForce 50."""

FILE_NAME = "kernel.cu"
"""The name of the file in the messages of the compiler and of compute-sanitizer, regardless of its
real name."""

COMPILE_SECONDS = 60.0


class ModuleVariable(Value):
    """A `__device__` variable of a submission."""

    name: str
    size: int
    """The size in bytes."""
    is_zero: bool
    """It has no initial value, so it is zero."""


class Kernel(Value):
    """A compiled submission."""

    entry: str
    """The kernel's name in PTX and machine code (mangled unless it is extern "C")."""
    ptx: str
    cubin: bytes
    facts: KernelFacts
    variables: tuple[ModuleVariable, ...] = ()
    """They have their initial values before every launch."""
    signature: Signature = SIGNATURE

    @property
    def launch(self) -> LaunchLine:
        return self.facts.launch


class PtxProgram(Value):
    """A submission's kernel as PTX, without machine code."""

    entry: str
    ptx: str
    launch: LaunchLine
    signature: Signature = SIGNATURE
    seconds: float = 0.0
    """The processor time that it took."""


class Compiled(Value):
    kernel: Kernel
    warnings: tuple[Diagnostic, ...]
    nvrtc: str
    """Version of the compiler."""


class Disassembled(Value):
    kernel: DisassembledKernel
    warnings: tuple[Diagnostic, ...]


class _OfSource(Value):
    """A mixin for requests about a source, for an architecture such as sm_90a."""

    source: str
    arch: str = DEFAULT_ARCH
    seconds: PositiveFloat = COMPILE_SECONDS
    signature: Signature = SIGNATURE
    """The signature of the kernel that the source must define."""

    @property
    def time_limit(self) -> float:  # the compiler never stops by itself
        return self.seconds


class Translate(_OfSource, Request[PtxProgram | CompileError | RuntimeFault | Unsupported]):
    """Compile to PTX. A `Compile` of the same source continues from there."""


class Compile(_OfSource, Request[Compiled | CompileError | RuntimeFault | Unsupported]):
    """Compile to machine code."""


class Disassemble(Request[Disassembled]):
    """Find badges, loops and lines of a kernel's machine code."""

    kernel: Kernel
