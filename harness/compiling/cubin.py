"""Edits machine code in its ELF file, a cubin."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_HEADER_OFFSET, _HEADER_SIZE = 0x28, 0x3A
_SYMBOL_TABLE, _WITHOUT_CONTENT = 2, 8
"""Types of sections."""


class _Section(NamedTuple):
    """The header of a section."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def without_zeros(cubin: bytes) -> bytes:
    """Return a cubin whose variables without initial values have no memory, for a program that only
    reads the instructions: NVIDIA's disassembler fills that memory, which may be gigabytes."""
    edited = bytearray(cubin)
    try:
        sections = [*_sections(edited)]
        emptied = set()
        for index, (at, section) in enumerate(sections):
            if section.type == _WITHOUT_CONTENT:
                emptied.add(index)
                _SECTION.pack_into(edited, at, *section._replace(size=0))
        for _, table in sections:
            if table.type == _SYMBOL_TABLE:
                for at in range(table.offset, table.offset + table.size, _SYMBOL.size):
                    *kind, place, _, _ = _SYMBOL.unpack_from(edited, at)
                    if place in emptied:
                        _SYMBOL.pack_into(edited, at, *kind, place, 0, 0)
    except struct.error:  # the disassembler reports what is no cubin
        return cubin
    return bytes(edited)


def _sections(cubin: bytes | bytearray) -> Iterator[tuple[int, _Section]]:
    """Yield the sections, and where the header of each is."""
    (start,) = struct.unpack_from("<Q", cubin, _HEADER_OFFSET)
    size, count = struct.unpack_from("<HH", cubin, _HEADER_SIZE)
    for index in range(count):
        at = start + index * size
        yield at, _Section(*_SECTION.unpack_from(cubin, at))
