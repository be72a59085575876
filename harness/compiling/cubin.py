"""Edits machine code in its ELF file, a cubin."""

import numpy as np

_HEADER = np.dtype({"names": ["at", "count"], "formats": ["<u8", "<u2"], "offsets": [0x28, 0x3C]})
"""Where the headers of the sections are, and how many."""

_SECTION = np.dtype(
    [
        *(("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8")),
        *(("offset", "<u8"), ("size", "<u8"), ("others", "V24")),
    ]
)
_SYMBOL = np.dtype([("kind", "V6"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")])

_SYMBOL_TABLE, _WITHOUT_CONTENT = 2, 8
"""Types of sections."""


def without_zeros(cubin: bytes) -> bytes:
    """Return a cubin whose variables without initial values have no memory, for a program that only
    reads the instructions. NVIDIA's disassembler would fill that memory, which may be gigabytes."""
    edited = bytearray(cubin)
    try:
        header = np.frombuffer(edited, _HEADER, 1)[0]
        sections = np.frombuffer(edited, _SECTION, header["count"], header["at"])
        is_empty = sections["type"] == _WITHOUT_CONTENT
        sections["size"][is_empty] = 0
        for table in sections[sections["type"] == _SYMBOL_TABLE]:
            count = table["size"] // _SYMBOL.itemsize
            symbols = np.frombuffer(edited, _SYMBOL, count, table["offset"])
            emptied = np.isin(symbols["section"], np.flatnonzero(is_empty))
            symbols["value"][emptied] = symbols["size"][emptied] = 0
    except (ValueError, OverflowError):  # the disassembler reports what is no cubin
        return cubin
    return bytes(edited)
