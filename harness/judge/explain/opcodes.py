"""The kinds of machine instructions, and the clocks for which they keep pipelines busy."""

import re
from collections.abc import Mapping
from enum import StrEnum

from harness.compiling.occupancy import WARP, multiprocessor
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import Gpu


class Kind(StrEnum):
    """The purpose of an instruction, as far as it matters for a matrix product."""

    FMA = "multiply-add"
    FP64 = "FP64"
    SPECIAL = "conversion, special function"
    TENSOR = "tensor core"
    SHARED_LOAD = "shared load"
    SHARED_STORE = "shared store"
    GLOBAL_LOAD = "global load"
    GLOBAL_STORE = "global store"
    COPY = "async copy"
    LOCAL = "spill"
    BARRIER = "barrier"
    BRANCH = "branch"
    OTHER = "address, bound, move"


_KINDS = {
    **dict.fromkeys(("FFMA", "FADD", "FMUL", "FFMA2"), Kind.FMA),
    **dict.fromkeys(("HMMA", "IMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA", "QMMA"), Kind.TENSOR),
    **dict.fromkeys(("DFMA", "DADD", "DMUL", "DSETP"), Kind.FP64),
    **dict.fromkeys(("MUFU", "F2F", "F2I", "I2F", "FRND"), Kind.SPECIAL),
    **dict.fromkeys(("LDS", "LDSM"), Kind.SHARED_LOAD),
    **dict.fromkeys(("STS", "STSM"), Kind.SHARED_STORE),
    "LDG": Kind.GLOBAL_LOAD,
    "LD": Kind.GLOBAL_LOAD,
    "STG": Kind.GLOBAL_STORE,
    "ST": Kind.GLOBAL_STORE,
    **dict.fromkeys(("LDGSTS", "UBLKCP", "UTMALDG", "LDGDEPBAR"), Kind.COPY),
    **dict.fromkeys(("LDL", "STL"), Kind.LOCAL),
    **dict.fromkeys(("BAR", "SYNCS", "DEPBAR", "WARPSYNC", "BSYNC", "BSSY"), Kind.BARRIER),
    **dict.fromkeys(("BRA", "BRX", "EXIT", "RET", "CALL"), Kind.BRANCH),
}


def kind_of(opcode: str) -> Kind:
    """Return the kind of an opcode, such as FFMA or LDS.128."""
    return _KINDS.get(opcode.partition(".")[0], Kind.OTHER)


def count_kinds(opcodes: Mapping[str, int]) -> dict[Kind, int]:
    """Return the number of instructions of each kind, the most frequent first."""
    counts: dict[Kind, int] = {}
    for opcode, count in opcodes.items():
        counts[kind_of(opcode)] = counts.get(kind_of(opcode), 0) + count
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


STORES = ("STG", "ST", "RED", "ATOMG", "ATOM")
"""Instructions that store to global memory, or change it there."""


def count_of(opcodes: Mapping[str, int], *names: str) -> int:
    """Return the number of instructions with one of these names and any modifiers."""
    return sum(count for opcode, count in opcodes.items() if opcode.partition(".")[0] in names)


_TYPES = {"tf32": "TF32", "bf16": "BF16", "f16": "FP16", "s8": "INT8", "u8": "INT8", "e4m3": "FP8"}


def matrix_type(opcode: str) -> str | None:
    """Return the type of the inputs of a matrix instruction of machine code; None for others."""
    name, *words = opcode.split(".")
    if kind_of(name) is not Kind.TENSOR:
        return None
    named = {"IMMA": "INT8", "IGMMA": "INT8", "QMMA": "FP8", "QGMMA": "FP8", "DMMA": "FP64"}
    return named.get(name) or next((word for word in words if word in ("TF32", "BF16")), "FP16")


def matrix_instruction(ptx_opcode: str) -> tuple[str, int, int] | None:
    """Return the type of the inputs, the multiply-adds and the threads of a matrix instruction of
    PTX; None for others."""
    shape = re.search(r"\bm(\d+)n(\d+)k(\d+)\b", ptx_opcode)
    if shape is None or "mma" not in ptx_opcode or "load" in ptx_opcode or "store" in ptx_opcode:
        return None
    m, n, k = (int(size) for size in shape.groups())
    words = ptx_opcode.split(".")
    # d, a, b, c types stand last; a is the type of the inputs
    kinds = [_TYPES[word] for word in words if word in _TYPES]
    if not kinds:
        return None
    return kinds[-1], m * n * k, 128 if ptx_opcode.startswith("wgmma") else 32


def columns_at_once(ptx_opcode: str) -> int | None:
    """Return the columns of a product that one matrix instruction of a warp group computes; None
    for others."""
    shape = re.search(r"\bm\d+n(\d+)k\d+\b", ptx_opcode)
    return int(shape[1]) if shape is not None and ptx_opcode.startswith("wgmma") else None


# ------------------------------------------------------------------------------------- pipelines

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
    clocks = {Unit.FP64: fp64, Unit.SPECIAL: special, Unit.INTEGER: max(integer, multiplied)}
    return {unit: busy for unit, busy in clocks.items() if busy}
