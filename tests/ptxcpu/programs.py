"""PTX of small kernels, for tests of the library."""

from __future__ import annotations

HEAD = """.version 8.0
.target sm_90a
.address_size 64
"""


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
