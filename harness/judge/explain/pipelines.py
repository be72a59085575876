"""The clocks for which machine instructions keep the arithmetic pipelines busy."""

from __future__ import annotations

from collections.abc import Mapping

from harness.compiling.occupancy import WARP, multiprocessor
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import Gpu
from harness.judge.explain.opcodes import Kind, kind_of

SPECIAL = 16
"""Special functions, such as reciprocals and roots, per clock and multiprocessor. Conversions
between float32 and integers use the same pipeline."""

INTEGER = 64
"""Additions, comparisons, shifts and logical operations per clock and multiprocessor. As many
multiplications use another pipeline."""

_INTEGER = (
    *("IADD3", "VIADD", "LOP3", "SHF", "ISETP", "FSETP", "LEA", "IABS", "SEL", "FSEL", "PRMT"),
    *("IMNMX", "VIMNMX", "FMNMX", "I2FP", "SGXT", "BMSK", "PLOP3", "F2FP"),
)


def is_double_conversion(opcode: str) -> bool:
    """Return whether an instruction converts from or to float64."""
    return kind_of(opcode) is Kind.SPECIAL and "F64" in opcode.split(".")


def is_special(opcode: str) -> bool:
    """Return whether an instruction goes through the pipeline for special functions."""
    return kind_of(opcode) is Kind.SPECIAL


def pipeline_clocks(opcodes: Mapping[str, int], gpu: Gpu) -> dict[Unit, float]:
    """Return the clocks for which one warp that executes the opcodes keeps each pipeline busy."""
    rate = multiprocessor(gpu.arch)
    fp64 = special = integer = multiplied = 0.0
    for opcode, count in opcodes.items():
        name, *modifiers = opcode.split(".")
        if name == "DMMA":
            continue
        if kind_of(opcode) is Kind.FP64:
            fp64 += count * WARP / rate.fp64_lanes
        elif kind_of(opcode) is Kind.SPECIAL:
            wide = "F64" in modifiers or "S64" in modifiers or "U64" in modifiers
            special += count * WARP / (rate.conversions_64 if wide else SPECIAL)
        elif name == "IMAD":
            multiplied += count * WARP / INTEGER * (2 if "HI" in modifiers else 1)
        elif name in _INTEGER:
            integer += count * WARP / INTEGER
    clocks = {
        Unit.FP64: fp64,
        Unit.SPECIAL: special,
        Unit.INTEGER: max(integer, multiplied),
    }
    return {unit: busy for unit, busy in clocks.items() if busy}
