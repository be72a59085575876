"""How long machine instructions keep the arithmetic pipelines of a multiprocessor busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.compiling.occupancy import WARP
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import Gpu
from harness.judge.explain.opcodes import Kind, kind_of


@dataclass(frozen=True, slots=True)
class Throughput:
    """Results of one multiprocessor in a clock."""

    fp64: int
    conversion_64: int
    """Conversions from and to 64-bit types."""
    special: int = 16
    """Reciprocals, roots and the like, and conversions between float32 and integers."""
    integer: int = 64
    """Additions, comparisons, shifts and logic; as many multiplications, in another pipeline."""


_THROUGHPUT = {
    75: Throughput(fp64=2, conversion_64=2),
    80: Throughput(fp64=32, conversion_64=16),
    86: Throughput(fp64=2, conversion_64=2),
    87: Throughput(fp64=2, conversion_64=2),
    89: Throughput(fp64=2, conversion_64=2),
    90: Throughput(fp64=64, conversion_64=16),
    100: Throughput(fp64=64, conversion_64=16),
    103: Throughput(fp64=2, conversion_64=2),
    110: Throughput(fp64=2, conversion_64=2),
    120: Throughput(fp64=2, conversion_64=2),
    121: Throughput(fp64=2, conversion_64=2),
}
"""The table "Throughput of Native Arithmetic Instructions" of the CUDA C++ Programming Guide. The
conversions that go through the pipeline for special functions (I2F, F2I) are held to its 16. The
figures were not compared with the table again; those of 9.0 fit microbenchmarks on an H200."""

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
    rate = _THROUGHPUT[gpu.number]
    fp64 = special = integer = multiplied = 0.0
    for opcode, count in opcodes.items():
        name, *modifiers = opcode.split(".")
        if name == "DMMA":
            continue
        if kind_of(opcode) is Kind.FP64:
            fp64 += count * WARP / rate.fp64
        elif kind_of(opcode) is Kind.SPECIAL:
            wide = "F64" in modifiers or "S64" in modifiers or "U64" in modifiers
            special += count * WARP / (rate.conversion_64 if wide else rate.special)
        elif name == "IMAD":
            multiplied += count * WARP / rate.integer * (2 if "HI" in modifiers else 1)
        elif name in _INTEGER:
            integer += count * WARP / rate.integer
    clocks = {
        Unit.FP64: fp64,
        Unit.SPECIAL: special,
        Unit.INTEGER: max(integer, multiplied),
    }
    return {unit: busy for unit, busy in clocks.items() if busy}
