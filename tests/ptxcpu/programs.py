"""Small kernels in PTX, for tests of the library."""

from collections.abc import Sequence
from typing import Any

from harness.protocol.files import cache_directory
from harness.ptxcpu.arguments import ParameterKind
from harness.ptxcpu.execution.cache import Cache
from harness.ptxcpu.kernel import Kernel

HEAD = """.version 8.0
.target sm_90a
.address_size 64
"""


def kernel_of(
    text: str, kinds: Sequence[ParameterKind], threads: int = 32, name: str = "litmus", **how: Any
) -> Kernel:
    """Translate a program. The judge's own cache has the runtime, which takes long to compile."""
    return Kernel(text, name, (threads, 1, 1), kinds, cache=Cache(cache_directory()), **how)


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
