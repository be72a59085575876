"""The compilation of CUDA C++ to PTX by NVRTC, with its options and output as plain values."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cuda.bindings import nvrtc

_TRACE = "-Xcudafe=--trace_includes"
_PREPROCESS = "-Xcudafe=--preprocess"
"""Options of NVRTC's front end, EDG, which writes their output to the process's own streams."""

# The headers that NVRTC includes by itself.
_BUILT_IN = ("__nv_nvrtc_builtin_header.h", "__nv_name_map")


class NvrtcError(Exception):
    """NVRTC itself failed; this is not a compile error of the source."""


@dataclass(frozen=True)
class Output:
    """The output of one compilation.

    included: the names of all files that the preprocessor opened or received.
    """

    succeeded: bool
    log: str
    ptx: str = ""
    included: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A source: its text, its name in messages, and headers by the names in #include.

    instances: template instances, as a program would name them, that are compiled in any case.
    """

    text: str
    name: str
    headers: dict[str, str] = field(default_factory=dict)
    instances: tuple[str, ...] = ()


def version() -> str:
    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"


def compile_to_ptx(source: Source, options: Iterable[str]) -> Output:
    """Compile for a virtual architecture. Raises NvrtcError."""
    with _program(source) as program:
        with _captured(2) as read:
            succeeded = _compile(program, [*options, _TRACE])
            trace = read()
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        ptx = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program) if succeeded else ""
    opened = (line.strip() for line in trace.splitlines())
    included = tuple(name for name in opened if name and name not in _BUILT_IN)
    return Output(succeeded, log, ptx, included)


def preprocess(source: Source, options: Iterable[str]) -> str:
    """Return the source after preprocessing. Raises NvrtcError."""
    with _program(source) as program, _captured(1) as read:
        _compile(program, [*options, _PREPROCESS])
        return read()


@contextmanager
def _program(source: Source) -> Iterator[nvrtc.nvrtcProgram]:
    names = [name.encode() for name in source.headers]
    texts = [text.encode() for text in source.headers.values()]
    status, program = nvrtc.nvrtcCreateProgram(
        source.text.encode(), source.name.encode(), len(names), texts, names
    )
    _check(status)
    try:
        for instance in source.instances:
            _check(nvrtc.nvrtcAddNameExpression(program, instance.encode())[0])
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _compile(program: nvrtc.nvrtcProgram, options: list[str]) -> bool:
    encoded = [option.encode() for option in options]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    if result == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        raise NvrtcError(f"NVRTC {version()} does not know an option: {log.strip()}")
    return bool(result == nvrtc.nvrtcResult.NVRTC_SUCCESS)


def _check(status: nvrtc.nvrtcResult) -> None:
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise NvrtcError(f"NVRTC {version()} failed: {status.name}")


def _text(
    get_size: Callable[..., tuple[nvrtc.nvrtcResult, int]],
    get: Callable[..., tuple[nvrtc.nvrtcResult]],
    program: nvrtc.nvrtcProgram,
) -> str:
    """Return one of NVRTC's outputs: query its size, then fill a buffer."""
    status, size = get_size(program)
    _check(status)
    buffer = bytes(size)
    _check(get(program, buffer)[0])
    return buffer.rstrip(b"\0").decode(errors="replace")


@contextmanager
def _captured(stream: int) -> Iterator[Callable[[], str]]:
    """Capture the output to a stream of this process, given by its number."""
    kept = os.dup(stream)
    with tempfile.TemporaryFile() as file:

        def read() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        os.dup2(file.fileno(), stream)
        try:
            yield read
        finally:
            os.dup2(kept, stream)
            os.close(kept)
