"""The lowering of PTX instructions to IR, by family."""

from harness.ptxcpu.codegen.instructions import (
    async_copy,
    bits,
    cluster,
    control,
    convert,
    floating,
    integer,
    memory,
    select,
    tensor,
    warp,
)
from harness.ptxcpu.codegen.table import InstructionTable

INSTRUCTIONS = InstructionTable(
    async_copy.TABLE,
    bits.TABLE,
    cluster.TABLE,
    control.TABLE,
    convert.TABLE,
    floating.TABLE,
    integer.TABLE,
    memory.TABLE,
    select.TABLE,
    tensor.TABLE,
    warp.TABLE,
)
"""The instructions that this device knows."""
