"""The arguments of a launch: buffers and numbers."""

import contextlib
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.ptxcpu.runtime.layout import MAX_BUFFERS, Window, base_of

Bytes = npt.NDArray[np.uint8]


class ParameterKind(Enum):
    """The kind of a parameter's argument. Machine code is generated for one kind of each
    parameter."""

    NUMBER = "number"
    READ_ONLY = "read-only buffer"
    WRITABLE = "writable buffer"


@dataclass(frozen=True)
class Buffer:
    """An array in global memory, whose address the kernel gets.

    data: its elements, contiguous in C's order. A kernel changes only writable buffers; writes to
        other buffers are discarded and reported.
    initialised: whether reading a byte that the kernel has not written is allowed.
    name: what messages call it; "argument 2" if it has none.
    """

    data: npt.NDArray[Any]
    writable: bool = False
    initialised: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        if not self.data.flags.c_contiguous:
            raise ValueError("the data of a buffer must be contiguous in C's order")

    @property
    def kind(self) -> ParameterKind:
        return ParameterKind.WRITABLE if self.writable else ParameterKind.READ_ONLY


Argument = Buffer | int | float


def zeros(size: int) -> Bytes:
    """Return memory that begins at a multiple of 64 bytes.

    The operating system provides a page of it when it is first touched.
    """
    raw = np.zeros(size + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + size]


def sparse_zeros(size: int) -> Bytes:
    """Return the same for memory of which most is never touched: the system provides it in small
    pages. (It would clear two megabytes at once for an array of NumPy.)"""
    memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # of a system without large pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.uint8, size)


def kind_of(argument: Argument) -> ParameterKind:
    return argument.kind if isinstance(argument, Buffer) else ParameterKind.NUMBER


def buffers_of(arguments: Sequence[Argument]) -> tuple[Buffer, ...]:
    """Return the buffers in the order of their indices."""
    found = tuple(x for x in arguments if isinstance(x, Buffer))
    if len(found) > MAX_BUFFERS:
        raise ValueError(f"a kernel takes at most {MAX_BUFFERS} buffers, not {len(found)}")
    return found


def window_of_buffer(index: int) -> int:
    return Window.BUFFER + index


def packed(arguments: Sequence[Argument], sizes: Sequence[int]) -> list[bytes]:
    """Return the bytes of each parameter; `sizes` are those of the parameters."""
    if len(arguments) != len(sizes):
        raise ValueError(f"the kernel has {len(sizes)} parameters, not {len(arguments)}")
    packed, index = [], 0
    for argument, size in zip(arguments, sizes, strict=True):
        number: int | float
        if isinstance(argument, Buffer):
            number = base_of(window_of_buffer(index))
            index += 1
        else:
            number = argument
        if isinstance(number, float):
            packed.append(struct.pack({4: "<f", 8: "<d"}[size], number))
        else:
            packed.append((number % (1 << 8 * size)).to_bytes(size, "little"))
    return packed
