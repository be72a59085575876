"""What a kernel's machine code consists of, by NVIDIA's disassembler."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from cuda import pathfinder

_TENSOR_OPCODES = ("HMMA", "HGMMA", "IMMA", "IGMMA", "DMMA", "QGMMA", "QMMA", "BMMA", "OMMA", "UTC")
_TENSOR_PTX = ("mma.sync", "wgmma.mma_async", "wmma.mma", "tcgen05.mma")
_SECONDS = 60


def opcodes(cubin: bytes, never_launched: frozenset[str]) -> dict[str, int]:
    """How often each opcode stands in the machine code, without modifiers: LDG.E.128 counts as LDG.

    never_launched: kernels that do not count. Empty where there is no nvdisasm.
    """
    program = pathfinder.find_nvidia_binary_utility("nvdisasm")
    if program is None:
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "kernel.cubin"
        path.write_bytes(cubin)
        listing = subprocess.run(
            [program, "--emit-json", str(path)],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    if listing.returncode != 0:
        return {}
    _, functions = json.loads(listing.stdout)
    counts: Counter[str] = Counter()
    for function in functions:
        if function["function-name"] not in never_launched:
            counts.update(
                instruction["opcode"].partition(".")[0]
                for instruction in function["sass-instructions"]
            )
    return dict(counts.most_common())


def uses_tensor_cores(instructions: dict[str, int], ptx: str) -> bool:
    """Read from the machine code; from PTX where there is no disassembler."""
    if instructions:
        return any(opcode.startswith(_TENSOR_OPCODES) for opcode in instructions)
    return any(instruction in ptx for instruction in _TENSOR_PTX)
