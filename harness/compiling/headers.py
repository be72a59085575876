"""The headers that a submission gets: CUDA's own, and stand-ins for all others.

No header is ever read from the submission's machine. CUDA's device headers come from NVIDIA's
packages, and any other name gets an empty stand-in. Names of the C++ standard library that device
code uses come from libcu++, which has them under `cuda::std`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from cuda import pathfinder

from harness.compiling.errors import SourceError
from harness.compiling.syntax import leading_to
from harness.protocol.report import Diagnostic

PRELUDE = (Path(__file__).parent / "prelude.h").read_text(encoding="utf-8")
PRELUDE_NAME = "matmul_arena_prelude.h"
STANDARD_NAME = "matmul_arena_standard_library.h"
_COMPARE = (Path(__file__).parent / "compare.h").read_text(encoding="utf-8")
_EMPTY = "#pragma once\n"

_HOST_ONLY = {
    *("assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h", "memory.h"),
    *("stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "time.h"),
    *("sys/time.h", "unistd.h", "omp.h"),
    *("cassert", "cctype", "cerrno", "cfloat", "cinttypes", "climits", "cmath", "cstdarg"),
    *("cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "ctime", "csignal", "cwchar"),
    *("algorithm", "any", "array", "atomic", "bit", "bitset", "charconv", "chrono", "compare"),
    *("complex", "concepts", "condition_variable", "deque", "exception", "execution", "filesystem"),
    *("format", "forward_list", "fstream", "functional", "future", "initializer_list", "iomanip"),
    *("ios", "iosfwd", "iostream", "istream", "iterator", "limits", "list", "locale", "map"),
    *("memory", "mutex", "new", "numbers", "numeric", "optional", "ostream", "queue", "random"),
    *("ranges", "ratio", "regex", "set", "source_location", "span", "sstream", "stack"),
    *("stdexcept", "streambuf", "string", "string_view", "system_error", "thread", "tuple"),
    *("type_traits", "typeindex", "typeinfo", "unordered_map", "unordered_set", "utility"),
    *("valarray", "variant", "vector", "version"),
    *("cuda_profiler_api.h", "cuda_runtime.h", "cuda_runtime_api.h"),
    *("device_launch_parameters.h", "driver_types.h", "solve.h"),
    *("helper_cuda.h", "helper_functions.h", "helper_string.h", "helper_timer.h"),
}
"""Headers that kernel files include for their host code; their stand-ins need no warning."""

_HOST_API = {
    *("cuda.h", "cudaGL.h", "cudaTypedefs.h", "cuda_gl_interop.h", "cuda_occupancy.h", "nvrtc.h"),
    *("channel_descriptor.h", "driver_functions.h", "cub/util_allocator.cuh"),
}
_HOST_LIBRARIES = ("thrust/", "cub/device/", "cublas", "cufft", "cusolver", "cusparse", "curand.")
"""CUDA's own headers for host programs; NVRTC compiles none of them. A whole toolkit has them in
the folder of the device headers, NVIDIA's packages do not."""

_THRUST_FOR_DEVICES = ("tuple.h", "pair.h", "functional.h", "distance.h", "advance.h", "iterator/")
"""Thrust's headers, or folders of them, that NVRTC compiles. The others have host code."""

_DEVICE_RUNTIME = re.compile(
    r"\bcuda(?:GridDependencySynchronize|TriggerProgrammaticLaunchCompletion)\b"
)
"""Device functions that nvcc programs have without an include."""

_CUB = ("util_type.cuh", "util_ptx.cuh", "thread/thread_operators.cuh")
_CUB_FOLDERS = ("block", "warp", "thread", "iterator", "grid")

_USED_EVERYWHERE = (
    *("cstddef", "cstdint", "cstdlib", "cstring", "cmath", "climits", "cfloat"),
    *("utility", "limits", "type_traits", "array", "tuple", "algorithm", "numeric"),
)
"""Standard headers that files often use without including them, because others include them."""

_NOT_IN_LIBCUDACXX = (
    *("fmod", "remainder", "remquo", "fma", "fmaf", "fdim", "nan", "erf", "erfc", "modf"),
    *("printf", "clock"),
)
_DEFINES_MATHEMATICS = {"cmath", "complex", "ccomplex", "linalg"}
_MATHEMATICS = (
    *("abs", "fabs", "fmod", "remainder", "remquo", "fma", "fmax", "fmin", "fdim", "nan", "exp"),
    *("exp2", "expm1", "log", "log10", "log2", "log1p", "pow", "sqrt", "cbrt", "hypot", "sin"),
    *("cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "erf", "erfc", "tgamma", "lgamma", "ceil", "floor", "trunc", "round", "lround"),
    *("llround", "nearbyint", "rint", "lrint", "llrint", "frexp", "ldexp", "modf", "scalbn"),
    *("ilogb", "logb", "nextafter", "copysign", "isfinite", "isinf", "isnan", "signbit"),
)
"""Functions that are in the global namespace of every kernel."""
_USES_NAMESPACE_STD = re.compile(r"\busing\s+namespace\s+std\b")
_MISSING = re.compile(
    r'(?:namespace "std" has no member|identifier) "(?P<name>\w+)"'
    r'|name followed by "::" must be a class or namespace name|is not a template'
)
_OF_THE_HOST = {
    *("cout", "cerr", "cin", "endl", "ostream", "istream", "ofstream", "ifstream", "stringstream"),
    *("unique_ptr", "shared_ptr", "make_unique", "make_shared", "to_string", "runtime_error"),
    *("string", "mt19937", "random_device", "uniform_real_distribution", "normal_distribution"),
}
"""Names of the standard library that no device code can use."""
_UNKNOWN = re.compile(
    r'(?:namespace "(?P<space>\w+)" has no member|identifier) "(?P<name>\w+)"'
    r'|name followed by "::" must be a class or namespace name'
)

MAX_NAME = 255
"""The length of a header's name in characters; file systems refuse to look for longer ones."""


@cache
def include_directories() -> tuple[Path, ...]:
    """Return the folders in which NVIDIA's packages keep CUDA's device headers."""
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


def stand_ins(includes: Iterable[Include], code: str) -> tuple[dict[str, str], tuple[Include, ...]]:
    """Return virtual headers by name, for all includes that are not CUDA's own device headers, and
    the includes whose stand-in is empty although device code may need the header."""
    uses_runtime = _DEVICE_RUNTIME.search(code) is not None
    virtual = {PRELUDE_NAME: PRELUDE + "#include <cuda_device_runtime_api.h>\n" * uses_runtime}
    empty: list[Include] = []
    for include in includes:
        name = include.header
        if name in virtual:
            continue
        if name == "cub/cub.cuh":
            virtual[name] = _EMPTY + "".join(f"#include <{each}>\n" for each in _cub_headers(code))
        elif name == "compare":
            virtual[name] = _COMPARE
        elif _is_for_the_host(name) or not _is_cudas_own(name):
            virtual[name] = _EMPTY
            if not _is_for_the_host(name) and name not in _HOST_ONLY:
                empty.append(include)
    return virtual, tuple(empty)


def warning(empty: Include) -> Diagnostic:
    """Return the warning that a header's stand-in is empty."""
    message = f'header "{empty.header}" is not available to a submission; an empty one is used'
    return Diagnostic(severity="warning", message=message, line=empty.line)


def _cub_headers(code: str) -> Iterator[str]:
    """Yield CUB's headers for threads, warps and blocks that the code uses names of. The whole
    <cub/cub.cuh> has host code, and would take seconds."""
    yield from (f"cub/{name}" for name in _CUB)
    for word in sorted(set(re.findall(r"\b[A-Z]\w+", code))):
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower()
        if "direct" in name:  # LoadDirectBlocked and its like
            yield from ("cub/block/block_load.cuh", "cub/block/block_store.cuh")
        yield from (
            f"cub/{folder}/{name}.cuh"
            for folder in _CUB_FOLDERS
            if _is_cudas_own(f"cub/{folder}/{name}.cuh")
        )


def may_need_standard_library(errors: Iterable[Diagnostic], code: str) -> bool:
    """Return whether errors could come from names that libcu++ has. Reading it takes seconds."""
    if not re.search(r"\bstd\b", code):
        return False
    found = filter(None, (_MISSING.search(error.message) for error in errors))
    names = {match["name"] or "" for match in found} - _OF_THE_HOST
    return any(name not in _HOST_ONLY or _of_libcudacxx(name) for name in names)


def with_thrust(virtual: dict[str, str], code: str) -> dict[str, str]:
    """Return the virtual headers without those of Thrust's that device code can use, if the code
    names Thrust. CUDA's own are read then, which takes seconds."""
    device = tuple(f"thrust/{name}" for name in _THRUST_FOR_DEVICES)
    served = {name for name in virtual if name.startswith(device) and _is_cudas_own(name)}
    if not served or not re.search(r"\bthrust\b(?!/)", code):
        return virtual
    others = {name: text for name, text in virtual.items() if name not in served}
    return {name: _EMPTY for name in _HOST_ONLY if not _is_cudas_own(name)} | others


def standard_library(includes: Iterable[Include], code: str) -> str:
    """Return a header that makes libcu++'s names known under `std`. They are those of the standard
    headers that the file includes, and of those that nearly every other header includes."""
    wanted = dict.fromkeys((*_USED_EVERYWHERE, *(include.header for include in includes)))
    functions: tuple[str, ...] = _NOT_IN_LIBCUDACXX
    is_ambiguous = _USES_NAMESPACE_STD.search(code) is not None
    if is_ambiguous:
        # A call of `abs` or `sqrt` without `std::` would find CUDA's function and libcu++'s.
        wanted = {name: None for name in wanted if name not in _DEFINES_MATHEMATICS}
        functions += _MATHEMATICS
    lines = [f"#include <{name}>" for each in wanted for name in _of_libcudacxx(each)]
    if is_ambiguous:
        lines = ["#define abs __std_abs", *lines, "#undef abs"]
    uses = "".join(f"using ::{name};" for name in dict.fromkeys(functions))
    lines.append(f"namespace std {{ using namespace cuda::std; {uses} }}")
    return _EMPTY + "\n".join(lines) + "\n"


@cache
def _of_libcudacxx(name: str) -> tuple[str, ...]:
    """Return libcu++'s headers for one of C++: a file of this name, or all of a folder."""
    name = f"c{name[:-2]}" if name.endswith(".h") else name
    if not re.fullmatch(r"\w+", name):
        return ()
    if _is_cudas_own(f"cuda/std/{name}"):
        return (f"cuda/std/{name}",)
    folders = (each / "cuda" / "std" / f"__{name}" for each in include_directories())
    return tuple(
        f"cuda/std/__{name}/{header.name}"
        for folder in folders
        for header in sorted(folder.glob("*.h"))
    )


def advice(error: Diagnostic, code: str, empty: Iterable[Include]) -> str:
    """Return what to do about a name that is unknown because its header is empty here.

    empty: the includes that got an empty stand-in with a warning.
    """
    unknown = _UNKNOWN.match(error.message)
    if unknown is None or error.line is None:
        return ""
    text = "".join(code.split("\n")[error.line - 1 : error.line])
    if re.search(r"\bthrust\s*::", text):
        return (
            "; of Thrust, a kernel can use only tuples, pairs, function objects and iterators, "
            "with their headers included"
        )
    name = unknown["name"] or ""
    if unknown["space"] == "std" and (
        name in _OF_THE_HOST or (name in _HOST_ONLY and not _of_libcudacxx(name))
    ):
        return "; it is for host code only, and a kernel cannot use it"
    header = next(iter(empty), None)
    if header is None or unknown["space"] is not None:
        return ""
    return (
        f'; if "{header.header}" (line {header.line}) declares it, write it into the file: a '
        "submission gets only CUDA's own headers"
    )


def is_allowed(opened: str, virtual: Container[str]) -> bool:
    """Return whether a file that the compiler opened is a stand-in or one of CUDA's headers."""
    if opened in virtual:
        return True
    path = Path(opened)
    if path.is_symlink():
        path = path.resolve()
    return _is_cudas_folder(path.parent)


@cache
def _is_cudas_folder(folder: Path) -> bool:
    """Return whether a folder is in one of `include_directories`. A thousand headers may be in one
    folder, and to resolve each of them takes as long as to compile it."""
    real = folder.resolve()
    return any(real.is_relative_to(directory.resolve()) for directory in include_directories())


def _is_for_the_host(name: str) -> bool:
    """Return whether a header of CUDA's is for host programs only."""
    return name in _HOST_API or name.startswith(_HOST_LIBRARIES)


def _is_cudas_own(name: str) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or len(name) > MAX_NAME:
        return False
    return any((directory / path).is_file() for directory in include_directories())


@dataclass(frozen=True, slots=True)
class Include:
    """One #include: the header as written between its quotes or brackets, and its line."""

    header: str
    line: int


_GAP = rb"(?:[ \t\v\f\r]|/\*(?:[^*]|\*(?!/))*+\*/)*+"
"""Text that the preprocessor treats as a space; possessive, so that no file can make it slow."""

_HASH = rb"^" + _GAP + rb"(?:#|%:|\?\?=)" + _GAP
_REST = rb"((?:/\*(?:[^*]|\*(?!/))*+\*/|[^\n])*+)"
_DIRECTIVE = re.compile(_HASH + rb"(include_next|include|import|embed)\b" + _GAP, re.MULTILINE)
_CONDITION = re.compile(_HASH + rb"(?:if|elif)\b" + _REST, re.MULTILINE)
_DEFINITION = re.compile(_HASH + rb"define\b" + _GAP + rb"(\w+)" + _REST, re.MULTILINE)
_PASTES = re.compile(rb"##|%:%:|\?\?=")
_QUERY = re.compile(rb"__has_(?:include|include_next|embed)\b" + _GAP + rb"(\(?)" + _GAP)
_ASKS_NOTHING = re.compile(
    rb"(?:\bdefined[ \t]*\(?[ \t]*|^[ \t]*(?:#|%:)[ \t]*ifn?def[ \t]+|^[ \t]*//(?:(?!\*/).)*)\Z"
)
"""What may stand before a query without parentheses; elsewhere it would give it another name."""
_MAX_LINE = 1000
"""No line that names a query is longer; else a file of one line would be read over and over."""
_HEADER = re.compile(rb'<([^>\n]+)>|"([^"\n]+)"')


def includes(code: bytes) -> tuple[Include, ...]:
    """Return every header that the source could ask for, in comments and conditions, too.

    It works on the text before comments and conditions are understood, and refuses a request that
    does not name its header literally. The preprocessor itself reports the files that it included,
    and `is_allowed` checks them. So the rules hold even for a request that this function overlooks.
    """
    spliced = code.replace(b"\\\n", b"")
    line_at = _lines_of_spliced(code)
    _check_conditions(spliced, line_at)
    found: list[Include] = []
    for pattern in (_DIRECTIVE, _QUERY):
        for match in pattern.finditer(spliced):
            line = line_at(match.end())
            if match.re is _DIRECTIVE and match[1] == b"embed":
                raise SourceError("#embed is not allowed in a submission", line)
            header = _HEADER.match(spliced, match.end())
            if header is None:
                if match.re is _QUERY and not match[1] and _asks_nothing(spliced, match.start()):
                    continue
                raise SourceError(
                    "an #include must name its header literally, between < > or quotes", line
                )
            name = (header[1] or header[2]).decode(errors="replace")
            found.append(Include(name, line))
    return tuple(found)


def _lines_of_spliced(code: bytes) -> Callable[[int], int]:
    """Return a function that gives the line of a place in the code without its line splices."""
    starts: list[int] = []
    removed = 0
    for end in re.finditer(rb"\\?\n", code):
        removed += 2 * len(end[0]) - 2
        starts.append(end.end() - removed)
    return lambda place: bisect_right(starts, place) + 1


def _asks_nothing(spliced: bytes, at: int) -> bool:
    """Return whether the query at this place is only named, judging by the text before it."""
    start = max(0, at - _MAX_LINE)
    end_of_line = spliced.rfind(b"\n", start, at)
    if end_of_line < 0 and start > 0:
        return False
    return _ASKS_NOTHING.search(spliced[max(end_of_line + 1, start) : at]) is not None


def _check_conditions(spliced: bytes, line_at: Callable[[int], int]) -> None:
    """Raise SourceError for a condition that pastes tokens: it could ask for a hidden header."""
    definitions = [(m[1].decode(), m[2]) for m in _DEFINITION.finditer(spliced)]
    pasting = {name for name, body in definitions if _PASTES.search(body)}
    pasting |= leading_to(pasting, ((name, _words(body)) for name, body in definitions))
    for match in _CONDITION.finditer(spliced):
        if pasting & _words(match[1]):
            message = "a macro that pastes tokens cannot stand in an #if"
            raise SourceError(message, line_at(match.end()))


def _words(code: bytes) -> set[str]:
    return set(re.findall(r"\w+", code.decode(errors="replace")))
