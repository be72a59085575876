"""A compiled submission, and the request that makes one."""

from __future__ import annotations

from typing import Literal

from harness.report import Diagnostic, KernelFacts, Value
from problem.launcher import LaunchLine

DEFAULT_ARCH = "sm_90a"
"""What to compile for where there is no GPU: the H100, with its own instructions (wgmma)."""


class Compile(Value):
    """Compile this source for an architecture such as sm_90a."""

    call: Literal["compile"] = "compile"
    source: str
    arch: str = DEFAULT_ARCH


class Kernel(Value):
    """A compiled submission."""

    entry: str
    """The kernel's name in PTX and machine code (mangled unless it is extern "C")."""
    ptx: str
    cubin: bytes
    facts: KernelFacts

    @property
    def launch(self) -> LaunchLine:
        return self.facts.launch


class Compiled(Value):
    kind: Literal["compiled"] = "compiled"
    kernel: Kernel
    warnings: tuple[Diagnostic, ...]
    nvrtc: str
    """Version of the compiler."""
