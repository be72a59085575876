"""Which headers a submission gets: CUDA's own, and stand-ins for everything else.

No header is ever read from the submission's machine. CUDA's own device headers come from
NVIDIA's packages; any other name gets a stand-in, empty unless listed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from cuda import pathfinder

from harness.compiling.includes import Include
from harness.protocol.report import Diagnostic

PRELUDE = (Path(__file__).parent / "prelude.h").read_text(encoding="utf-8")
PRELUDE_NAME = "matmul_arena_prelude.h"

_HOST_ONLY = {
    *("assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdarg.h"),
    *("stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "time.h"),
    *("cassert", "cctype", "cerrno", "cfloat", "cinttypes", "climits", "cmath", "cstdarg"),
    *("cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "ctime"),
    *("algorithm", "chrono", "fstream", "functional", "iomanip", "iostream", "iterator", "map"),
    *("memory", "numeric", "random", "sstream", "stdexcept", "string", "thread", "vector"),
    *("cublas_v2.h", "cublasLt.h", "cuda_profiler_api.h", "cuda_runtime.h"),
    *("cuda_runtime_api.h", "curand.h", "device_launch_parameters.h", "helper_cuda.h", "solve.h"),
    "driver_types.h",
}
"""Headers that kernel files include for their host code; a stand-in needs no warning."""

_HOST_API = {
    *("cuda.h", "cudaGL.h", "cudaTypedefs.h", "cuda_gl_interop.h", "cuda_occupancy.h", "nvrtc.h"),
    *("channel_descriptor.h", "driver_functions.h"),
}
_HOST_LIBRARIES = ("thrust/", "cub/device/")
"""CUDA's own, but for programs of the host: NVRTC compiles none of them."""

_CUB = "#pragma once\n" + "".join(
    f"#include <cub/{level}/{level}_{name}.cuh>\n"
    for level in ("block", "warp")
    for name in ("exchange", "load", "reduce", "scan", "store")
)
"""What blocks and warps can use of <cub/cub.cuh>; the rest is for the host."""

_REPLACED = {"cub/cub.cuh": _CUB} | {
    name: f"#pragma once\n#include <cuda/std/{name}>\n"
    "namespace std { using namespace cuda::std; }\n"
    for name in ("array", "limits", "tuple", "type_traits", "utility")
}
"""Headers of which device code can use a part: of C++'s own, libcu++ has it."""

MAX_NAME = 255
"""Of a header, in characters: file systems refuse to be asked for longer ones."""


@dataclass(frozen=True, slots=True)
class Headers:
    """Virtual headers by name, and what to tell the user about them."""

    virtual: dict[str, str]
    warnings: tuple[Diagnostic, ...]


@cache
def include_directories() -> tuple[Path, ...]:
    """Where NVIDIA's packages keep CUDA's device headers."""
    found: list[Path] = []
    for library in ("cudart", "cccl"):
        directory = pathfinder.find_nvidia_header_directory(library)
        if directory:
            found.append(Path(directory))
    if not any((directory / "crt" / "mma.h").is_file() for directory in found):
        # In CUDA 12's packages the headers behind mma.h come with the offline compiler.
        offline = pathfinder.find_nvidia_header_directory("nvcc")
        found += [Path(offline)] if offline else []
    return tuple(found)


def stand_ins(includes: Iterable[Include]) -> Headers:
    """Virtual headers for all includes that are not CUDA's own."""
    virtual = {PRELUDE_NAME: PRELUDE}
    warnings: list[Diagnostic] = []
    for include in includes:
        name = include.header
        if name in virtual:
            continue
        if name in _REPLACED:
            virtual[name] = _REPLACED[name]
        elif _is_for_the_host(name) or not _is_cudas_own(name):
            virtual[name] = "#pragma once\n"
            if not _is_for_the_host(name) and name not in _HOST_ONLY:
                warnings.append(
                    Diagnostic(
                        severity="warning",
                        message=f'header "{name}" is not available to a submission; '
                        "it was taken as empty",
                        line=include.line,
                    )
                )
    return Headers(virtual, tuple(warnings))


def is_allowed(opened: str, supplied: Headers) -> bool:
    """Whether a file that the compiler opened is a stand-in or one of CUDA's own."""
    if opened in supplied.virtual:
        return True
    path = Path(opened).resolve()
    return any(path.is_relative_to(directory.resolve()) for directory in include_directories())


def _is_for_the_host(name: str) -> bool:
    """Whether a header of CUDA's is of no use to device code."""
    return name in _HOST_API or name.startswith(_HOST_LIBRARIES)


def _is_cudas_own(name: str) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or len(name) > MAX_NAME:
        return False
    return any((directory / path).is_file() for directory in include_directories())
