"""Converts NVRTC's PTX to one program and to machine code, and collects the facts about them."""

import hashlib
from dataclasses import dataclass, replace
from functools import partial

from harness.compiling import diagnostics, entries
from harness.compiling.diagnostics import lacking
from harness.compiling.errors import refuse_as_unsupported, refuse_for
from harness.compiling.occupancy import occupancy
from harness.compiling.ptxas import assemble, resources
from harness.compiling.source import Source
from harness.protocol.compiler import Compiled, Kernel, ModuleVariable
from harness.protocol.report import Diagnostic, KernelFacts
from harness.ptxcpu import nvrtc
from harness.ptxcpu.analysis.taint import machine_dependent
from harness.ptxcpu.ptx.errors import PtxError
from harness.ptxcpu.ptx.names import base_name
from harness.ptxcpu.ptx.parser import parse as parse_ptx
from harness.ptxcpu.ptx.printer import canonical, fingerprint
from harness.ptxcpu.ptx.syntax import Function, Instruction, Program, symbols
from problem.launcher import LaunchLine


@dataclass(frozen=True)
class Translated:
    """A source as PTX: the whole program, and the kernel in it that is launched."""

    source: Source
    program: Program
    entry: Function
    ptx: str
    warnings: tuple[Diagnostic, ...]

    @property
    def launch(self) -> LaunchLine:
        return replace(self.source.launch, cluster=self.entry.cluster)


def translated(source: Source, ptx: str, warnings: list[Diagnostic]) -> Translated:
    """Return NVRTC's PTX as one program, with the kernel that the judge launches. Raises
    Refused."""
    try:
        program = parse_ptx(ptx)
    except PtxError as error:
        found = Diagnostic(
            severity="error",
            message=f"assembly that this judge cannot read: {error.reason}",
            line=error.line or None,
        )
        raise refuse_for(found) from None
    entry = entries.find(program, source)
    for other in program.functions.values():
        if other.is_entry and other is not entry:
            message = f"kernel `{base_name(other.name)}` is never launched by the judge"
            warnings.append(Diagnostic(severity="warning", message=message))
    program = program.with_entry(entry.name)
    entries.check_launch(program, entry)
    entries.check_instructions(program)
    ptx = canonical(program.with_visible_variables())
    return Translated(source, program, entry, ptx, tuple(warnings))


def _machine_dependent(program: Program, entry: Function) -> list[Diagnostic]:
    """Return a note for each source of branches that may differ between machines or launches."""
    try:
        found = machine_dependent(program, entry.name)
    except PtxError:  # the CPU device reports PTX that it cannot read
        return []
    return [
        Diagnostic(
            severity="note",
            message=f"branches in {each.branches} line{'s' * (each.branches > 1)} depend on "
            f"{each.source}",
            line=each.line,
        )
        for each in found
    ]


def to_machine_code(found: Translated, arch: str) -> Compiled:
    """Return the machine code and the facts about it. Raises Refused."""
    source, program, entry, warnings = found.source, found.program, found.entry, [*found.warnings]
    cubin, log, (notes, identity) = assemble(
        found.ptx,
        arch,
        lambda: (_machine_dependent(program, entry), _identity(program, entry, source)),
    )
    warnings += notes
    messages = diagnostics.bounded(
        diagnostics.of_ptxas(log, program.line_of, partial(_line_of_call, program))
    )
    if not cubin:
        errors = diagnostics.of_severity("error", messages)
        lacks = lacking(errors, arch)
        if lacks is not None:
            raise refuse_as_unsupported(*lacks)
        raise refuse_for(*errors or diagnostics.unexplained(log))
    warnings += diagnostics.of_severity("warning", messages)
    taken = resources(log, entry.name, source.launch)
    entries.check_shared_memory(taken, arch)
    return Compiled(
        kernel=Kernel(
            entry=entry.name,
            ptx=found.ptx,
            cubin=cubin,
            signature=source.signature,
            variables=tuple(
                ModuleVariable(
                    name=name, size=variable.size, is_zero=not (variable.image or variable.pointees)
                )
                for name, variable in program.variables.items()
                if variable.space == "global" and variable.size
            ),
            facts=KernelFacts(
                program_sha256=identity,
                arch=arch,
                launch=found.launch,
                resources=taken,
                occupancy=occupancy(taken, arch),
            ),
        ),
        warnings=tuple(warnings),
        nvrtc=nvrtc.version(),
    )


def _line_of_call(program: Program, name: str) -> int | None:
    items = (item for each in program.functions.values() for item in each.body)
    calls = (i for i in items if isinstance(i, Instruction) and i.opcode.startswith("call"))
    used = (i.line for i in calls if any(name in symbols(operand) for operand in i.operands))
    return next(used, 0) or None


def _identity(program: Program, entry: Function, source: Source) -> str:
    """Return the hash of the program and of how it is launched."""
    first = list(program.functions).index(entry.name)
    parts = (fingerprint(program), str(first), repr(source.launch))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
