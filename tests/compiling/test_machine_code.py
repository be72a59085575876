"""The printed program has the same machine code as the program that NVRTC compiles alone."""

import json
import subprocess
from pathlib import Path

import pytest
from cuda import pathfinder
from cuda.bindings import nvrtc

from harness.compiling import headers
from harness.compiling.source import parse
from harness.protocol.compiler import DEFAULT_ARCH
from tests.compiled import compiled

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def of_nvrtc(text: str) -> bytes:
    """Return the machine code that NVRTC makes alone."""
    source = parse(text)
    virtual = headers.stand_ins(source.includes, text)[0]
    _, program = nvrtc.nvrtcCreateProgram(
        source.device_code.encode(),
        b"kernel.cu",
        len(virtual),
        [header.encode() for header in virtual.values()],
        [name.encode() for name in virtual],
    )
    options = [
        f"--gpu-architecture={DEFAULT_ARCH}",
        "-lineinfo",
        f"--pre-include={headers.PRELUDE_NAME}",
        *(f"--include-path={directory}" for directory in headers.include_directories()),
    ]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    cubin = bytes(size)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin


def instructions(cubin: bytes, folder: Path) -> list[object]:
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    nvdisasm = pathfinder.find_nvidia_binary_utility("nvdisasm")
    listing = subprocess.run([nvdisasm, "--emit-json", path], capture_output=True, check=True)
    _, functions = json.loads(listing.stdout)
    return [function["sass-instructions"] for function in functions]


@pytest.mark.parametrize(
    "name", [pytest.param("12_warp_tiling", marks=pytest.mark.architectures), "30_mma_tf32x3"]
)
def test_printing_costs_nothing(name: str, tmp_path: Path) -> None:
    text = (SOLUTIONS / f"{name}.cu").read_text(encoding="utf-8")
    ours, theirs = (instructions(each, tmp_path) for each in (compiled(text).cubin, of_nvrtc(text)))
    assert ours == theirs
