"""A submission's source → one PTX program → machine code, and what is known of them.

NVRTC makes PTX. That is parsed whole, and what is printed from the parsed form is the program: it
becomes machine code, the CPU device translates it, and its hash is the kernel's identity. Nothing
else that the compiler wrote is used, so strings in `asm` can hide nothing.

Runs in a child process (harness/judge/workers) under limits of time and memory, because a compiler
fed by strangers is itself attacked.
"""

from __future__ import annotations

import sys
import time
import warnings
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

from harness.compiling import diagnostics, disassembly, headers
from harness.compiling import text as source_text
from harness.compiling.errors import SourceError
from harness.compiling.host_code import without_host_code, without_what_failed
from harness.compiling.refusal import Refused, refuse, refuse_for
from harness.compiling.source import Source, parse
from harness.protocol import background
from harness.protocol.compiler import (
    Compile,
    Compiled,
    Disassemble,
    Disassembled,
    PtxProgram,
    Translate,
)
from harness.protocol.report import (
    CompileError,
    Diagnostic,
    DisassembledKernel,
    RuntimeFault,
    Stage,
)
from harness.ptxcpu import nvrtc

if TYPE_CHECKING:
    from harness.compiling.program import Translated

FILE_NAME = "kernel.cu"
"""What the compiler is told the file is called, whatever its real name."""

MAX_PASSES = 8
"""Over one source, each with more of its host code set aside."""

_LAMBDAS = "-default-device"
"""NVRTC takes generic lambdas inside a kernel for host code, which nvcc does not."""


def translate_source(request: Translate) -> PtxProgram | CompileError | RuntimeFault:
    """As far as PTX; what is refused only as machine code is not refused here."""
    found = _translated(request.source, request.arch)
    _kept.clear()
    if isinstance(found, CompileError | RuntimeFault):
        return found
    _kept[request.source, request.arch] = found
    return PtxProgram(entry=found.entry.name, ptx=found.ptx, launch=found.launch)


def compile_source(request: Compile) -> Compiled | CompileError | RuntimeFault:
    """Compile for one architecture. What is wrong with the submission is a result, not an error."""
    kept = _kept.pop((request.source, request.arch), None)
    found = kept or _translated(request.source, request.arch)
    if isinstance(found, CompileError | RuntimeFault):
        return found
    from harness.compiling.program import to_machine_code

    try:
        return to_machine_code(found, request.arch)
    except Refused as refusal:
        return refusal.outcome


_kept: dict[tuple[str, str], Translated] = {}
"""The last translation, until its machine code is wanted: NVRTC may have taken seconds for it."""


def _translated(text: str, arch: str) -> Translated | CompileError | RuntimeFault:
    importing: list[Future[None]] = []
    if "harness.compiling.program" not in sys.modules:
        importing = [background.begin(_import_what_follows)]
    try:
        source = parse(text)
        ptx, found = _to_ptx(source, arch)
        wait(importing)
        from harness.compiling.program import translated

        return translated(source, ptx, found)
    except SourceError as error:
        return CompileError(stage=Stage.READ, message=str(error), diagnostics=(error.diagnostic,))
    except Refused as refusal:
        return refusal.outcome


def _import_what_follows() -> None:
    """What is not needed before there is PTX, while NVRTC is at work, whose trace of what it opens
    no warning of Python's may come into. Once in a process: where memory is out, CPython waits for
    ever for a thread that it begins."""
    with warnings.catch_warnings(action="ignore"):
        from harness.compiling import ptxas

        ptxas.program()
        from harness.compiling import program  # noqa: F401


def version() -> str:
    return nvrtc.version()


# ---------------------------------------------------------------------------------- source → PTX


def _to_ptx(source: Source, arch: str) -> tuple[str, list[Diagnostic]]:
    """PTX, and warnings. Where NVRTC calls something host code, or does not know what a declaration
    without a word of CUDA is about, it is set aside and the rest is compiled again."""
    supplied = headers.stand_ins(source.includes)
    options = [
        f"--gpu-architecture={arch.replace('sm_', 'compute_')}",
        "-lineinfo",
        f"--pre-include={headers.PRELUDE_NAME}",
        *(f"--include-path={directory}" for directory in headers.include_directories()),
    ]
    code = source.device_code
    instances = (source.instance,) if source.instance else ()
    host_lines = source.host_lines
    first: tuple[Diagnostic, ...] = ()
    """Errors before anything but host code was set aside."""
    for _ in range(MAX_PASSES):
        text = nvrtc.Source(code, FILE_NAME, supplied.virtual, instances)
        output = nvrtc.compile_to_ptx(text, options)
        if any(not headers.is_allowed(name, supplied) for name in output.included):
            raise refuse("an #include reaches a file that is neither CUDA's own nor a stand-in")
        said = diagnostics.of_nvrtc(output.log, FILE_NAME)
        if output.succeeded:
            if source_text.may_hold_the_time(code):
                started = time.time()
                source_text.check_for_present_time(nvrtc.preprocess(text, options), started)
            more = diagnostics.warnings_of(diagnostics.bounded(said))
            return output.ptx, [*source.warnings, *supplied.warnings, *more]
        errors = diagnostics.errors_of(diagnostics.bounded(said))
        if instances and any(map(diagnostics.is_about_an_instance, errors)):
            instances = ()  # of something that the host's function alone knows
            continue
        of_the_host = [each for each in said if diagnostics.is_about_host_code(each)]
        host_lines = diagnostics.declared_at(of_the_host, code) | host_lines
        remaining = without_host_code(code, of_the_host)
        if remaining == code:
            first = first or errors
            remaining = without_what_failed(code, errors)
        if remaining == code:
            if not of_the_host or _LAMBDAS in options:
                break
            options.append(_LAMBDAS)
        code = remaining
    lasting = tuple(error for error in first if error in errors)
    told = lasting or first or errors or diagnostics.unexplained(output.log)
    raise refuse_for(*diagnostics.with_host_lines(told, host_lines))


# ------------------------------------------------------------- machine code → its instructions


def disassemble_kernel(request: Disassemble) -> Disassembled:
    """What is known of a kernel, and what its instructions say. They take the disassembler half a
    second, however few they are, so it is asked only of kernels that need them."""
    kernel = request.kernel
    functions = disassembly.disassemble(kernel.cubin, FILE_NAME)
    instructions = disassembly.opcodes(functions)
    unreadable = Diagnostic(
        severity="warning",
        message="the machine code could not be disassembled: the kernel has no badge for its "
        "cores, and no rank among those that have",
    )
    return Disassembled(
        kernel=DisassembledKernel(
            **dict(kernel.facts),
            badges=disassembly.badges(kernel.launch, instructions),
            instructions=instructions,
            lines=disassembly.lines(functions, kernel.entry),
            loops=disassembly.loops(functions, kernel.entry),
        ),
        warnings=() if instructions else (unreadable,),
    )
