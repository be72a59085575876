"""Small kernels in PTX, for tests of the library."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from harness.protocol.files import cache_directory
from harness.ptxcpu.arguments import Argument, ParameterKind
from harness.ptxcpu.execution.cache import Cache
from harness.ptxcpu.kernel import Kernel
from harness.ptxcpu.results import Hazard

HEAD = """.version 8.0
.target sm_90a
.address_size 64
"""


def kernel_of(
    text: str, kinds: Sequence[ParameterKind], threads: int = 32, name: str = "litmus", **how: Any
) -> Kernel:
    """Translate a program. The judge's own cache has the runtime, which takes long to compile."""
    return Kernel(text, name, (threads, 1, 1), kinds, cache=Cache(cache_directory()), **how)


def both_paths(
    text: str, kinds: Sequence[ParameterKind], threads: int = 32
) -> tuple[Kernel, Kernel]:
    """The same kernel for the vector path and for threads alone."""
    fast, slow = (kernel_of(text, kinds, threads, vector_above=above) for above in (0, inf))
    return fast, slow


def check_both(
    kernels: tuple[Kernel, Kernel],
    grid: tuple[int, int, int],
    arguments: Callable[[], Sequence[Argument]],
    about: object,
) -> tuple[set[Hazard], int]:
    """Return what both paths find, in the same words, and how many blocks the vector path decided.

    arguments: makes those of one launch. about: said where the paths differ.
    """
    fast, slow = (kernel.check(grid, arguments()) for kernel in kernels)
    assert fast.fault is None and slow.fault is None, about
    assert fast.findings == slow.findings, about
    return {each.hazard for each in fast.findings}, fast.vector_blocks


def entry(parameters: str, body: str, memory: str = "", directive: str = "") -> str:
    """Return a program of one kernel, `litmus`, with some registers of each kind.

    parameters: such as `u64 data, u32 number`.
    memory: declarations of variables.
    """
    given = ", ".join(f".param .{each.strip()}" for each in parameters.split(",") if each)
    return f"""{HEAD}{memory}
.visible .entry litmus({given}) {directive}
{{
.reg .b32 %r<300>; .reg .b64 %rd<300>; .reg .f32 %f<50>; .reg .pred %p<9>;
{body}
ret;
}}
"""
