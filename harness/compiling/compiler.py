"""A submission's source → one PTX program → machine code, and what is known of them.

NVRTC makes PTX. That is parsed whole, and what is printed from the parsed form is the program: it
becomes machine code, the CPU device translates it, and its hash is the kernel's identity. Nothing
else that the compiler wrote is used, so strings in `asm` can hide nothing.

Runs in a child process (harness/workers) under limits of time and memory, because a compiler fed by
strangers is itself attacked.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace

from harness import nvrtc
from harness.compiling import (
    diagnostics,
    disassembly,
    entries,
    headers,
    machine_code,
    parameters,
)
from harness.compiling import text as source_text
from harness.compiling.errors import SourceError
from harness.compiling.occupancy import occupancy
from harness.compiling.ptxas import assemble
from harness.compiling.resources import resources
from harness.compiling.source import Source, parse, without_host_code
from harness.protocol.compiler import (
    Compile,
    Compiled,
    Disassemble,
    Disassembled,
    Kernel,
    PtxProgram,
    Translate,
)
from harness.ptx.errors import PtxError
from harness.ptx.parser import parse as parse_ptx
from harness.ptx.printer import canonical, fingerprint
from harness.ptx.syntax import Function, Program
from harness.report import (
    CompileError,
    Diagnostic,
    DisassembledKernel,
    KernelFacts,
    RuntimeFault,
    Stage,
)
from problem.launcher import LaunchLine

FILE_NAME = "kernel.cu"
"""What the compiler is told the file is called, whatever its real name."""

MAX_PASSES = 4
"""Over one source, each with more of its host code set aside."""


class _Refused(Exception):
    """Why a submission does not compile."""

    def __init__(self, outcome: CompileError | RuntimeFault) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def translate_source(request: Translate) -> PtxProgram | CompileError | RuntimeFault:
    """As far as PTX; what is refused only as machine code is not refused here."""
    found = _translated(request.source, request.arch)
    _kept.clear()
    if not isinstance(found, _Translated):
        return found
    _kept[request.source, request.arch] = found
    return PtxProgram(entry=found.entry.name, ptx=found.ptx, launch=found.launch)


def compile_source(request: Compile) -> Compiled | CompileError | RuntimeFault:
    """Compile for one architecture. What is wrong with the submission is a result, not an error."""
    kept = _kept.pop((request.source, request.arch), None)
    found = kept or _translated(request.source, request.arch)
    if not isinstance(found, _Translated):
        return found
    try:
        return _to_machine_code(found, request.arch)
    except _Refused as refusal:
        return refusal.outcome


@dataclass(frozen=True)
class _Translated:
    """A source as PTX: the whole program, and the kernel in it that is launched."""

    source: Source
    program: Program
    entry: Function
    ptx: str
    warnings: tuple[Diagnostic, ...]

    @property
    def launch(self) -> LaunchLine:
        return replace(self.source.launch, cluster=self.entry.cluster)


_kept: dict[tuple[str, str], _Translated] = {}
"""The last translation, until its machine code is wanted: NVRTC may have taken seconds for it."""


def _translated(text: str, arch: str) -> _Translated | CompileError | RuntimeFault:
    try:
        source = parse(text)
        ptx, warnings = _to_ptx(source, arch)
        return _launched(source, _parse_ptx(ptx), warnings)
    except SourceError as error:
        return CompileError(stage=Stage.READ, message=str(error), diagnostics=(error.diagnostic,))
    except _Refused as refusal:
        return refusal.outcome


def version() -> str:
    return nvrtc.version()


def _refuse(message: str, *found: Diagnostic) -> _Refused:
    return _Refused(CompileError(stage=Stage.COMPILE, message=message, diagnostics=found))


def _refuse_for(errors: tuple[Diagnostic, ...], log: str) -> _Refused:
    """The first error says what is wrong."""
    if not errors:
        errors = (Diagnostic(severity="error", message=diagnostics.last_line(log)),)
    first = errors[0]
    where = f"line {first.line}: " if first.line else ""
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return _refuse(f"{where}{first.message}{more}", *errors)


# ---------------------------------------------------------------------------------- source → PTX


def _to_ptx(source: Source, arch: str) -> tuple[str, list[Diagnostic]]:
    """PTX, and warnings. Where NVRTC calls something host code, it is set aside and the rest is
    compiled again."""
    supplied = headers.stand_ins(source.includes)
    options = [
        f"--gpu-architecture={arch.replace('sm_', 'compute_')}",
        "-lineinfo",
        f"--pre-include={headers.PRELUDE_NAME}",
        *(f"--include-path={directory}" for directory in headers.include_directories()),
    ]
    code = source.device_code
    for _ in range(MAX_PASSES):
        text = nvrtc.Source(code, FILE_NAME, supplied.virtual)
        output = nvrtc.compile_to_ptx(text, options)
        if any(not headers.is_allowed(name, supplied) for name in output.included):
            raise _refuse("an #include reaches a file that is neither CUDA's own nor a stand-in")
        said = diagnostics.of_nvrtc(output.log, FILE_NAME)
        if output.succeeded:
            if source_text.may_hold_the_time(code):
                started = time.time()
                source_text.check_for_present_time(nvrtc.preprocess(text, options), started)
            warnings = diagnostics.warnings_of(diagnostics.bounded(said))
            return output.ptx, [*source.warnings, *supplied.warnings, *warnings]
        remaining = without_host_code(code, filter(diagnostics.is_about_host_code, said))
        if remaining == code:
            break
        code = remaining
    raise _refuse_for(diagnostics.errors_of(diagnostics.bounded(said)), output.log)


def _parse_ptx(ptx: str) -> Program:
    try:
        return parse_ptx(ptx)
    except PtxError as error:
        found = Diagnostic(
            severity="error",
            message=f"assembly that this judge cannot read: {error.reason}",
            line=error.line or None,
        )
        raise _refuse_for((found,), "") from None


def _launched(source: Source, program: Program, warnings: list[Diagnostic]) -> _Translated:
    """The program as it is printed canonically, around the kernel that the judge launches."""
    entry = entries.find(program)
    if isinstance(entry, str):
        raise _refuse(entry)
    for other in entries.entries(program):
        if other is not entry:
            message = f"kernel `{entries.base_name(other.name)}` is never launched by the judge"
            warnings.append(Diagnostic(severity="warning", message=message))
    program = program.with_entry(entry.name)
    unlaunchable = entries.memory_problem(program) or entries.launch_problem(entry)
    if unlaunchable:
        raise _Refused(RuntimeFault(stage=Stage.COMPILE, message=unlaunchable))
    refused = entries.undefined_effect(program) or parameters.misuse(program)
    if refused:
        raise _refuse_for((refused,), "")
    return _Translated(source, program, entry, canonical(program), tuple(warnings))


# ---------------------------------------------------------------------------- PTX → machine code


def _to_machine_code(found: _Translated, arch: str) -> Compiled:
    source, program, entry, warnings = found.source, found.program, found.entry, [*found.warnings]
    assembled = assemble(found.ptx, arch)
    said = diagnostics.bounded(diagnostics.of_ptxas(assembled.log, program.line_of))
    if not assembled.cubin:
        raise _refuse_for(diagnostics.errors_of(said), assembled.log)
    warnings += diagnostics.warnings_of(said)
    launched = machine_code.entry_point(assembled.cubin, entry.name)
    if not launched.is_visible:
        raise _refuse(f"the entry {entry.name} is not visible, so nobody can launch it")
    if not entries.takes_the_problems_parameters(launched):
        raise _refuse(entries.WRONG_PARAMETERS)
    taken = resources(assembled.log, entry.name, launched, source.launch)
    too_large = entries.shared_memory_problem(taken, arch)
    if too_large:
        raise _Refused(RuntimeFault(stage=Stage.COMPILE, message=too_large))
    return Compiled(
        kernel=Kernel(
            entry=entry.name,
            ptx=found.ptx,
            cubin=assembled.cubin,
            facts=KernelFacts(
                code_sha256=source.code_sha256,
                program_sha256=_identity(program, entry, source),
                arch=arch,
                launch=found.launch,
                resources=taken,
                occupancy=occupancy(taken, arch),
            ),
        ),
        warnings=tuple(warnings),
        nvrtc=version(),
    )


def _identity(program: Program, entry: Function, source: Source) -> str:
    """Of the program and how it is launched."""
    first = list(program.functions).index(entry.name)
    parts = (fingerprint(program), str(first), repr(source.launch))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


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
