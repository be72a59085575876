"""NVRTC: source → PTX, machine code, resources, diagnostics with lines.

Runs in a child process (harness/workers) under limits of time and memory, because a compiler fed by
strangers is itself attacked.
"""

from __future__ import annotations

import re

from cuda.bindings import nvrtc

from harness.compiling import headers, machine_code
from harness.compiling.occupancy import multiprocessor, occupancy
from harness.compiling.source import KERNEL_NAME, SIGNATURE, SourceError, parse
from harness.protocol.compiler import Compile, Compiled, Kernel
from harness.report import (
    Badge,
    CompileError,
    Diagnostic,
    KernelFacts,
    Resources,
    RuntimeFault,
    Stage,
    Value,
)
from problem.launcher import BLOCK, LaunchLine

FILE_NAME = "kernel.cu"
"""What the compiler is told the file is called, whatever its real name."""

_PARAMETERS = ("u64", "u64", "u64", "u32", "u32", "u32")


def compile_source(request: Compile) -> Compiled | CompileError | RuntimeFault:
    """Compile for one architecture. What is wrong with the submission is a result, not an error."""
    try:
        source = parse(request.source)
    except SourceError as error:
        return CompileError(stage=Stage.READ, message=str(error), diagnostics=(error.diagnostic,))
    supplied = headers.stand_ins(source.includes)
    warnings = [*source.warnings, *supplied.warnings]
    program = _nvrtc(source.device_code, supplied.virtual, request.arch)
    diagnostics = _diagnostics(program.log)
    errors = tuple(found for found in diagnostics if found.severity == "error")
    if not program.succeeded:
        if not errors:
            errors = (Diagnostic(severity="error", message=_last_line(program.log)),)
        first = errors[0]
        where = f"line {first.line}: " if first.line else ""
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return CompileError(
            stage=Stage.COMPILE,
            message=f"{where}{first.message}{more}",
            diagnostics=errors,
        )
    entries = _entries(program.ptx)
    named = [entry for entry in entries if _base_name(entry.name) == KERNEL_NAME]
    problem = _entry_problem(entries, named)
    if problem:
        return CompileError(stage=Stage.COMPILE, message=problem)
    entry = named[0]
    for other in entries:
        if other is not entry:
            message = f"kernel `{_base_name(other.name)}` is never launched by the judge"
            warnings.append(Diagnostic(severity="warning", message=message))
    warnings += [found for found in diagnostics if found.severity == "warning"]
    resources = _resources(program.log, entry.name, source.launch)
    refused = _launch_problem(entry, resources, request.arch) or _memory_problem(program.ptx)
    if refused:
        return RuntimeFault(stage=Stage.COMPILE, message=refused)
    instructions = machine_code.opcodes(
        program.cubin, frozenset(other.name for other in entries if other is not entry)
    )
    return Compiled(
        kernel=Kernel(
            entry=entry.name,
            ptx=program.ptx,
            cubin=program.cubin,
            facts=KernelFacts(
                code_sha256=source.code_sha256,
                arch=request.arch,
                launch=source.launch,
                resources=resources,
                occupancy=occupancy(resources, request.arch),
                badges=(
                    Badge.TENSOR_CORES
                    if machine_code.uses_tensor_cores(instructions, program.ptx)
                    else Badge.CUDA_CORES,
                    Badge.DEFAULT_LAUNCH if source.launch.is_default else Badge.DECLARED_LAUNCH,
                ),
                instructions=instructions,
            ),
        ),
        warnings=tuple(warnings),
        nvrtc=version(),
    )


def version() -> str:
    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"


# ---------------------------------------------------------------------------------------- NVRTC


class _Program(Value):
    succeeded: bool
    log: str
    ptx: str
    cubin: bytes


def _nvrtc(code: str, virtual: dict[str, str], arch: str) -> _Program:
    options = [
        f"--gpu-architecture={arch}",
        "-lineinfo",
        "--ptxas-options=-v",
        "--no-cache",  # from a cache comes machine code without what ptxas says of it
        f"--pre-include={headers.PRELUDE_NAME}",
        *(f"--include-path={directory}" for directory in headers.include_directories()),
    ]
    names = [name.encode() for name in virtual]
    texts = [text.encode() for text in virtual.values()]
    status, program = nvrtc.nvrtcCreateProgram(
        code.encode(), FILE_NAME.encode(), len(names), texts, names
    )
    _check(status)
    try:
        encoded = [option.encode() for option in options]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        if result == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
            raise RuntimeError(f"NVRTC {version()} does not know {arch} or an option: {log}")
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return _Program(succeeded=False, log=log, ptx="", cubin=b"")
        return _Program(
            succeeded=True,
            log=log,
            ptx=_text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program),
            cubin=_bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program),
        )
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _check(status: nvrtc.nvrtcResult) -> None:
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC failed: {status.name}")


def _bytes(get_size: object, get: object, program: nvrtc.nvrtcProgram) -> bytes:
    assert callable(get_size) and callable(get)
    status, size = get_size(program)
    _check(status)
    buffer = bytes(size)
    _check(get(program, buffer)[0])
    return buffer


def _text(get_size: object, get: object, program: nvrtc.nvrtcProgram) -> str:
    return _bytes(get_size, get, program).rstrip(b"\0").decode(errors="replace")


# ---------------------------------------------------------------------------------- diagnostics
#
# NVRTC and ptxas offer no other form of these facts than their log.

_FRONT_END = re.compile(
    r"^(?P<file>[^()\n]+)\((?P<line>\d+)\): (?:catastrophic )?"
    r"(?P<severity>error|warning)(?: #\S+)?: (?P<message>.*)$"
)
_PTXAS = re.compile(r"^ptxas (?:.*?; )?(?P<severity>error|fatal|warning)\s*: (?P<message>.*)$")
_PTXAS_LINE = re.compile(r"^ptxas .*?, line \d+; (?P<severity>error|warning)\s*: (?P<message>.*)$")


_MAX_DIAGNOSTICS = 50
_MAX_MESSAGE = 500
"""A source can make the compiler print a megabyte; a report keeps what a person would read."""


def _diagnostics(log: str) -> list[Diagnostic]:
    """Errors first where there are too many, then warnings, each in the log's order."""
    found = _all_diagnostics(log)
    if len(found) > _MAX_DIAGNOSTICS:
        found = sorted(found, key=lambda diagnostic: diagnostic.severity != "error")
    return [
        diagnostic
        if len(diagnostic.message) <= _MAX_MESSAGE
        else diagnostic.model_copy(update={"message": diagnostic.message[:_MAX_MESSAGE] + "…"})
        for diagnostic in found[:_MAX_DIAGNOSTICS]
    ]


def _all_diagnostics(log: str) -> list[Diagnostic]:
    lines = [line.lstrip("\0") for line in log.splitlines()]  # NVRTC puts one before ptxas's errors
    found: list[Diagnostic] = []
    for number, text in enumerate(lines):
        match = _FRONT_END.match(text)
        if match:
            ours = match["file"] == FILE_NAME
            if not ours and match["severity"] == "warning":
                continue  # a warning in a header is not the user's to mend
            # The source line and a caret under the place follow, both indented by two.
            caret = next((below for below in lines[number + 2 : number + 3] if "^" in below), "")
            column = caret.find("^") - 1 if ours and caret.strip() == "^" else 0
            header = "" if ours else f"in {match['file'].rsplit('/', 1)[-1]}: "
            found.append(
                Diagnostic(
                    severity="error" if match["severity"] == "error" else "warning",
                    message=header + match["message"],
                    line=int(match["line"]) or None if ours else None,
                    column=column if column > 0 else None,
                )
            )
            continue
        match = _PTXAS_LINE.match(text) or _PTXAS.match(text)
        if match:
            found.append(
                Diagnostic(
                    severity="warning" if match["severity"] == "warning" else "error",
                    message=f"ptxas: {match['message']}",
                )
            )
    return found


def _last_line(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "the compiler gave no reason"


_FUNCTION = re.compile(r"Function properties for (\S+)")
_COMPILING = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def _resources(log: str, entry: str, launch: LaunchLine) -> Resources:
    """What ptxas -v says of one entry."""
    compiling = function = ""
    stack = stores = loads = registers = shared = 0
    for line in log.splitlines():
        if match := _COMPILING.search(line):
            compiling = match[1]
        elif match := _FUNCTION.search(line):
            function = match[1]
        elif (match := _STACK.search(line)) and function == entry:
            stack, stores, loads = (int(value) for value in match.groups())
        elif (match := _USED.search(line)) and compiling == entry:
            registers = int(match[1])
            smem = _SHARED.search(line)
            shared = int(smem[1]) if smem else 0
    if not registers:
        raise RuntimeError(f"ptxas did not report the registers of {entry}")
    return Resources(
        registers=registers,
        stack_bytes=stack,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        static_shared_bytes=shared,
        dynamic_shared_bytes=launch.shared_memory,
    )


# -------------------------------------------------------------------------------------- entries


class _Entry(Value):
    """A kernel as PTX declares it."""

    name: str
    parameters: tuple[str, ...]
    directives: dict[str, tuple[int, ...]]


_ENTRY = re.compile(
    r"^(?:\.visible |\.weak |\.extern )*\.entry ([\w$]+)\s*\((.*?)\)(.*?)^\{",
    re.MULTILINE | re.DOTALL,
)
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)")
_DIRECTIVE = re.compile(r"\.(maxntid|reqntid)\s+([\d, ]+)")
_MANGLED = re.compile(r"^_Z(\d+)(\w+)$")


def _entries(ptx: str) -> list[_Entry]:
    return [
        _Entry(
            name=match[1],
            parameters=tuple(_PARAMETER.findall(match[2])),
            directives={
                word: tuple(int(size) for size in sizes.split(",") if size.strip())
                for word, sizes in _DIRECTIVE.findall(match[3])
            },
        )
        for match in _ENTRY.finditer(ptx)
    ]


def _base_name(entry: str) -> str:
    """The C++ name of an entry; a name inside a namespace or a template stays mangled."""
    match = _MANGLED.match(entry)
    return match[2][: int(match[1])] if match else entry


def _entry_problem(entries: list[_Entry], named: list[_Entry]) -> str | None:
    if not named:
        others = ", ".join(sorted({_base_name(entry.name) for entry in entries})[:3])
        return (
            f"no kernel named {KERNEL_NAME}; write "
            f"`__global__ void {KERNEL_NAME}({SIGNATURE})`"
            + (f" (found: {others})" if others else "")
        )
    if len(named) > 1:
        return f"{len(named)} kernels are named {KERNEL_NAME}; keep one"
    kinds = tuple(kind.replace("b", "u").replace("s", "u") for kind in named[0].parameters)
    if kinds != _PARAMETERS:
        return f"the parameters of {KERNEL_NAME} are not ({SIGNATURE})"
    return None


_MAX_DEVICE_BYTES = 4 << 30
"""Of __device__ variables: ten times all three matrices of the ranked size."""

_GLOBAL = re.compile(
    r"^(?:\.visible |\.weak |\.extern )*\.global (?:\.attribute\(\.\w+\) )?(?:\.align \d+ )?"
    r"\.[bus](\d+) [\w$]+\[(\d+)\]",
    re.MULTILINE,
)


def _memory_problem(ptx: str) -> str | None:
    """Why no GPU should be asked to hold the module. (What ptxas -v says is cut to 32 bits.)"""
    size = sum(int(bits) // 8 * int(count) for bits, count in _GLOBAL.findall(ptx))
    if size > _MAX_DEVICE_BYTES:
        return (
            f"the kernel's __device__ variables take {size} bytes; "
            f"a submission gets at most {_MAX_DEVICE_BYTES}"
        )
    return None


def _launch_problem(entry: _Entry, resources: Resources, arch: str) -> str | None:
    """Why a GPU of this architecture would refuse the rules' launch."""
    threads = BLOCK[0] * BLOCK[1] * BLOCK[2]
    allowed = 1
    for size in entry.directives.get("maxntid", (threads,)):
        allowed *= size
    if allowed < threads:
        return (
            f"the kernel's __launch_bounds__ allow {allowed} threads a block; "
            f"the launch has {threads}"
        )
    required = entry.directives.get("reqntid")
    if required and tuple(required) + (1,) * (3 - len(required)) != BLOCK:
        return f"the kernel requires blocks of {required} threads; the launch has {BLOCK}"
    asked = resources.shared_bytes
    most = multiprocessor(arch).shared_per_block
    if asked > most:
        return (
            f"the kernel asks for {asked} bytes of shared memory a block; "
            f"{arch} gives a block at most {most}"
        )
    return None
