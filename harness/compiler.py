"""NVRTC: source → PTX, machine code, resources, diagnostics with lines."""

from __future__ import annotations

from harness.report import KernelFacts, Value
from problem.launcher import LaunchLine


class Kernel(Value):
    """A compiled submission."""

    entry: str
    """The kernel's name in PTX and machine code (mangled unless it is extern "C")."""
    ptx: str
    cubin: bytes
    launch: LaunchLine
    facts: KernelFacts
