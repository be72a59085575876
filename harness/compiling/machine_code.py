"""What machine code says of itself: registers, parameters, and every instruction in it.

The attributes in `.nv.info` sections have no published format; their numbers and layouts are those
that NVIDIA's cuobjdump and nvdisasm print as EIATTR_REGCOUNT, EIATTR_KPARAM_INFO, and so on.
"""

from __future__ import annotations

import io
import json
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuda import pathfinder
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

_TENSOR_OPCODES = ("HMMA", "HGMMA", "IMMA", "IGMMA", "DMMA", "QGMMA", "QMMA", "BMMA", "OMMA", "UTC")
_SECONDS = 60

_PARAMETER, _PARAMETER_BYTES, _REGISTERS = 0x17, 0x19, 0x2F  # EIATTR_...
_HAS_SIZE = 4  # EIFMT_SVAL


@dataclass(frozen=True)
class Parameter:
    """One of a kernel's parameters, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class EntryPoint:
    """What the launch of one kernel takes."""

    registers: int
    parameters: tuple[Parameter, ...]
    parameter_bytes: int


def entry_point(cubin: bytes, name: str) -> EntryPoint:
    """What the machine code says of one kernel. Raises ValueError where it does not say it."""
    try:
        elf = ELFFile(io.BytesIO(cubin))
        symbols = elf.get_section_by_name(".symtab")
        about, everything = (
            elf.get_section_by_name(section) for section in (f".nv.info.{name}", ".nv.info")
        )
        if not isinstance(symbols, SymbolTableSection) or about is None or everything is None:
            raise ValueError(f"the machine code has no kernel {name}")
        registers = None
        for attribute, value in _attributes(everything.data()):
            if attribute == _REGISTERS:
                symbol, count = struct.unpack("<II", value)
                if symbols.get_symbol(symbol).name == name:
                    registers = count
        parameters: dict[int, Parameter] = {}
        total = 0
        for attribute, value in _attributes(about.data()):
            if attribute == _PARAMETER:
                _, ordinal, offset, size = struct.unpack("<IHHI", value)
                parameters[ordinal] = Parameter(offset, size >> 18)
            elif attribute == _PARAMETER_BYTES:
                (total,) = struct.unpack("<H", value)
    except (ELFError, struct.error) as error:
        raise ValueError(f"the machine code cannot be read: {error}") from error
    if registers is None or sorted(parameters) != list(range(len(parameters))):
        raise ValueError(f"the machine code does not say what {name} takes")
    ordered = tuple(parameters[i] for i in range(len(parameters)))
    return EntryPoint(registers, ordered, total)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value: the value has a size in front, or is two bytes itself."""
    at = 0
    while at < len(data):
        kind, number, word = struct.unpack_from("<BBH", data, at)
        at += 4
        if kind == _HAS_SIZE:
            yield number, data[at : at + word]
            at += word
        else:
            yield number, word.to_bytes(2, "little")


def opcodes(cubin: bytes) -> dict[str, int]:
    """How often each opcode stands in the machine code, in every function that it holds, without
    modifiers: LDG.E.128 counts as LDG. Empty where it cannot be read."""
    program = pathfinder.find_nvidia_binary_utility("nvdisasm")
    if program is None:
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "kernel.cubin"
        path.write_bytes(cubin)
        try:
            listing = subprocess.run(
                [program, "--emit-json", str(path)],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {}
    if listing.returncode != 0:
        return {}
    _, functions = json.loads(listing.stdout)
    counts: Counter[str] = Counter(
        instruction["opcode"].partition(".")[0]
        for function in functions
        for instruction in function["sass-instructions"]
    )
    return dict(counts.most_common())


def uses_tensor_cores(instructions: dict[str, int]) -> bool:
    return any(opcode.startswith(_TENSOR_OPCODES) for opcode in instructions)
