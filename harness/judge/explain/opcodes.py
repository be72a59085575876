"""The kinds of machine instructions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum


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


def mix(opcodes: Mapping[str, int]) -> dict[Kind, int]:
    """Return the number of instructions of each kind, the most frequent first."""
    counts: dict[Kind, int] = {}
    for opcode, count in opcodes.items():
        counts[kind_of(opcode)] = counts.get(kind_of(opcode), 0) + count
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


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
