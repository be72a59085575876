"""Compiles a submission's source to one PTX program and to machine code, and collects facts about
it.

NVRTC generates PTX. It is parsed completely, and the text printed from the parsed form is the
program. It becomes machine code, the CPU device translates it, and its hash is the kernel's
identity. Nothing else that the compiler wrote is used, so strings in `asm` cannot hide code.

The compiler runs in a child process (harness/judge/workers) with limits of time and memory, because
sources of strangers may attack it.
"""

import itertools
import re
import time
from typing import Any

from harness.compiling import diagnostics, disassembly, headers, lexical
from harness.compiling.errors import Refused, refuse, refuse_as_unsupported, refuse_for
from harness.compiling.host_code import without_failed_code
from harness.compiling.occupancy import number_of
from harness.compiling.program import Translated, to_machine_code, translated
from harness.compiling.source import Source, parse
from harness.protocol.compiler import (
    DEFAULT_ARCH,
    FILE_NAME,
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
    Unsupported,
    Value,
)
from harness.protocol.request import Request
from harness.ptxcpu import nvrtc
from problem.signature import Signature

_STANDARDS = ("c++17", "c++20")
"""The standard of nvcc without options, and one with concepts and designated initialisers. nvcc has
the latter in C++17, too, as an extension of GCC's."""

_NEWER = re.compile(r"\b(concept|requires|consteval|constinit)\b")
"""Words with which the newer standard is tried first, since each attempt may take seconds."""

_FOR_THE_DEVICE = "-default-device"
"""This option makes functions without a specifier device code. Without it, NVRTC regards generic
lambdas as host code, even those in kernels; nvcc does not."""


def answer(request: Request[Any]) -> Value:
    match request:
        case Translate():
            return translate_source(request)
        case Compile():
            return compile_source(request)
        case Disassemble():
            return disassemble_kernel(request)
    raise TypeError(f"the compiler does not answer {type(request).__name__}")


def translate_source(request: Translate) -> PtxProgram | CompileError | RuntimeFault | Unsupported:
    """Compile to PTX. Errors that only machine code shows are found later."""
    began = time.process_time()
    _kept.clear()
    try:
        found = _translated(request)
    except Refused as refusal:
        return refusal.outcome
    _kept[request.source, request.arch, request.signature] = found
    return PtxProgram(
        entry=found.entry.name,
        ptx=found.ptx,
        launch=found.launch,
        signature=request.signature,
        seconds=time.process_time() - began,
    )


def compile_source(request: Compile) -> Compiled | CompileError | RuntimeFault | Unsupported:
    """Compile for one architecture. A mistake of the submission is a result, not an exception."""
    kept = _kept.pop((request.source, request.arch, request.signature), None)
    try:
        return to_machine_code(kept or _translated(request), request.arch)
    except Refused as refusal:
        return refusal.outcome


_kept: dict[tuple[str, str, Signature], Translated] = {}
"""The last translation, kept until its machine code is requested, since NVRTC may take seconds."""


# ---------------------------------------------------------------------------------- source → PTX


def _translated(request: Translate | Compile) -> Translated:
    """Return the source as PTX. Raises Refused: as unsupported, if only the default architecture,
    which is newer, accepts the source."""
    source, arch = parse(request.source, request.signature), request.arch
    try:
        ptx, warnings = _to_ptx(source, arch)
    except Refused as refusal:
        if not _is_accepted_later(source, arch):
            raise
        reason = str(refusal).partition(" (and ")[0]
        message = f"{reason} on {arch}; newer architectures have it"
        raise refuse_as_unsupported(message, None) from None
    return translated(source, ptx, warnings)


def _is_accepted_later(source: Source, arch: str) -> bool:
    if number_of(arch) >= number_of(DEFAULT_ARCH):
        return False
    try:
        _to_ptx(source, DEFAULT_ARCH)
    except Refused:
        return False
    return True


def _to_ptx(source: Source, arch: str) -> tuple[str, list[Diagnostic]]:
    """Return PTX and warnings, by the first standard of C++ that accepts the source.

    Raises Refused, for the standard with fewer errors.
    """
    refusals = []
    for standard in sorted(_STANDARDS, reverse=bool(_NEWER.search(source.device_code))):
        try:
            return _by_standard(source, arch, standard)
        except Refused as refusal:
            refusals.append(refusal)
    other_language = lexical.other_language(source.device_code)
    if other_language is not None:
        raise refuse_for(other_language)
    raise min(refusals, key=_errors)


def _errors(refusal: Refused) -> int:
    found = getattr(refusal.outcome, "diagnostics", ())
    return sum(each.severity == "error" for each in found)


def _by_standard(source: Source, arch: str, standard: str) -> tuple[str, list[Diagnostic]]:
    """Return PTX and warnings. Raises Refused.

    The first compilation usually suffices. If it fails, possible causes are changed in turn: the
    template's instance, the standard library, and declarations that can only be host code, or other
    device code.
    """
    virtual, empty = headers.stand_ins(source.includes, source.device_code)
    warnings = tuple(map(headers.warning, empty))
    code, instances, host_lines = source.device_code, source.instances, source.host_lines
    options = [*_options(arch), f"--std={standard}"]
    first: tuple[Diagnostic, ...] = ()
    """The errors before a declaration was removed because of them."""
    left_out: dict[str, int] = {}
    kernel = source.signature.kernel if source.parameters else None
    while True:
        text = nvrtc.Source(code, FILE_NAME, virtual, instances[:1])
        output = nvrtc.compile_to_ptx(text, options)
        if any(not headers.is_allowed(name, virtual) for name in output.included):
            raise refuse("an #include reaches a file that is neither CUDA's own nor a stand-in")
        messages = diagnostics.of_nvrtc(output.log, FILE_NAME, code)
        if output.succeeded and not lexical.names(left_out, code):
            if lexical.may_hold_the_time(code):
                started = time.time()
                lexical.check_for_present_time(nvrtc.preprocess(text, options), started)
            more = diagnostics.of_severity("warning", diagnostics.bounded(messages))
            # The compiler knows neither the judge's launch of a `static` kernel nor host code.
            used = {source.signature.kernel, *source.host_names}
            more = tuple(each for each in more if diagnostics.unused(each) not in used)
            others = itertools.starmap(_left_out, left_out.items())
            return output.ptx, [*source.warnings, *warnings, *others, *more]
        errors = diagnostics.of_severity("error", messages)
        of_the_host = [each for each in errors if diagnostics.is_about_host_code(each)]
        if any(map(diagnostics.is_about_an_instance, errors)):
            instances = instances[1:]
        elif (
            not of_the_host  # set aside first: compiling the library takes longer than the file
            and headers.STANDARD_NAME not in virtual
            and headers.may_need_standard_library(errors, code)
        ):
            virtual[headers.STANDARD_NAME] = headers.standard_library(source.includes, code)
            options.append(f"--pre-include={headers.STANDARD_NAME}")
        elif not of_the_host and (more_headers := headers.with_thrust(virtual, code)) != virtual:
            virtual = more_headers
        else:
            # A lambda that is regarded as host code may be device code by the option.
            keep_lambdas = bool(of_the_host) and _FOR_THE_DEVICE not in options
            host_lines = diagnostics.declared_at(of_the_host, code) | host_lines
            remaining, more_left_out = without_failed_code(
                code, of_the_host or errors, kernel, keep_lambdas=keep_lambdas
            )
            if remaining != code:
                left_out |= more_left_out
                first = first or (() if of_the_host else errors)
                code = remaining
            elif of_the_host and keep_lambdas:
                options.append(_FOR_THE_DEVICE)
            else:
                break
    # What other code names is needed, even if an overload or another instance of it compiles.
    is_needed = lexical.names(left_out, code)
    lasting = () if is_needed else tuple(error for error in first if error in errors)
    found = lasting or first or errors or diagnostics.unexplained(output.log)
    shown = diagnostics.with_advice(
        diagnostics.with_causes_first(found),
        host_lines,
        lambda error: headers.advice(error, code, empty) or diagnostics.of_a_macro(error, code),
    )
    raise refuse_for(*diagnostics.bounded(shown), warnings=warnings)


def _left_out(name: str, line: int) -> Diagnostic:
    message = f"`{name}` does not compile and is left out; the submission's kernel does not use it"
    return Diagnostic(severity="warning", message=message, line=line)


def _options(arch: str) -> list[str]:
    return [
        f"--gpu-architecture={arch.replace('sm_', 'compute_')}",
        "-lineinfo",
        "-Xcudafe=--extended-lambda",
        "--device-int128",
        f"--pre-include={headers.PRELUDE_NAME}",
        *(f"--include-path={directory}" for directory in headers.include_directories()),
    ]


# ------------------------------------------------------------- machine code → its instructions


def disassemble_kernel(request: Disassemble) -> Disassembled:
    """Return the facts about a kernel, with those that its machine instructions show.

    The disassembler takes half a second for any kernel, so it runs only where it is needed.
    """
    kernel = request.kernel
    functions = disassembly.disassemble(kernel.cubin, FILE_NAME)
    code, instructions = functions.get(kernel.entry, ()), disassembly.opcodes(functions)
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
            lines=disassembly.lines(code),
            loops=disassembly.loops(code),
        ),
        warnings=() if instructions else (unreadable,),
    )
