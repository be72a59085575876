"""The meaning of every PTX instruction, by family. Importing this fills the table in forms.py."""

from harness.devices.cpu.instructions import (
    async_copy,
    bits,
    control,
    convert,
    floating,
    integer,
    memory,
    select,
    tensor,
    warp,
)

__all__ = [
    "async_copy",
    "bits",
    "control",
    "convert",
    "floating",
    "integer",
    "memory",
    "select",
    "tensor",
    "warp",
]
