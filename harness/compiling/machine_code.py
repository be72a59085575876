"""What machine code says of itself: registers and parameters.

The attributes in `.nv.info` sections have no published format; their numbers and layouts are those
that NVIDIA's cuobjdump and nvdisasm print as EIATTR_REGCOUNT, EIATTR_KPARAM_INFO, and so on.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

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

    is_visible: bool
    """Whether it can be launched by its name."""
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
        named = symbols.get_symbol_by_name(name) or []
        is_visible = any(s["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK") for s in named)
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
    return EntryPoint(is_visible, registers, ordered, total)


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
