"""The instructions of a kernel's machine code with their source lines, from NVIDIA's
disassembler."""

import json
import subprocess
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from cuda import pathfinder

from harness.compiling.cubin import without_zeros
from harness.compiling.waits import Instruction, issue_clocks, loads_together, waits
from harness.protocol.report import Badge, CodeLine, CodeLoop
from problem.launcher import LaunchLine

_Span = tuple[int, int]
"""The indices of a loop's first and last instruction."""

_TENSOR_OPCODES = ("HMMA", "HGMMA", "IMMA", "IGMMA", "DMMA", "QGMMA", "QMMA", "BMMA", "OMMA", "UTC")
_MULTIPLY_AND_ADD = frozenset({"FFMA", "FFMA2", "DFMA", *_TENSOR_OPCODES})
_SECONDS = 60
_SHOWN = 16
"""Instructions of a source line whose text is kept: an unrolled loop has hundreds of one kind."""


Code = tuple[Instruction, ...]


def disassemble(cubin: bytes, file_name: str) -> dict[str, Code]:
    """Return all functions of a cubin by name, or none if it cannot be read.

    file_name: the name of the submission's file in the compiler's messages.
    """
    program = pathfinder.find_nvidia_binary_utility("nvdisasm")
    if program is None:
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "kernel.cubin"
        path.write_bytes(without_zeros(cubin))
        try:
            listing = subprocess.run(
                [program, "--emit-json", "--print-line-info", str(path)],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {}
    if listing.returncode != 0:
        return {}
    _, functions, *tables = json.loads(listing.stdout)
    files = tables[0]["files"] if tables else []
    own = {index for index, file in enumerate(files) if file["file"] == file_name}
    return {each["function-name"]: tuple(_instructions(each, own)) for each in functions}


def _instructions(
    function: dict[str, list[dict[str, str]]], own: set[int]
) -> Iterable[Instruction]:
    """Yield the instructions of a listing, which names a source line only where it changes."""
    line: int | None = None
    for item in function["sass-instructions"]:
        if "source-line" in item:
            line = int(item["source-line"]) if int(item["source-file-id"]) in own else None
        yield Instruction(item["opcode"], item.get("operands", ""), item.get("predicate"), line)


def opcodes(functions: Mapping[str, Code]) -> dict[str, int]:
    """Count the instructions by opcode; LDG.E.128 counts as LDG."""
    counts = Counter(each.name for code in functions.values() for each in code)
    return dict(counts.most_common())


def lines(instructions: Code) -> tuple[CodeLine, ...]:
    """Return the machine instructions of each source line."""
    computing = {i for first, last in _innermost(_spans(instructions)) for i in range(first, last)}
    found: dict[int, list[int]] = {}
    for index, each in enumerate(instructions):
        if each.line is not None:
            found.setdefault(each.line, []).append(index)
    return tuple(
        CodeLine(
            line=line,
            opcodes=dict(Counter(instructions[index].opcode for index in became)),
            instructions=tuple(
                instructions[index].text
                for index in ([i for i in became if i in computing] or became)[:_SHOWN]
            ),
        )
        for line, became in sorted(found.items())
    )


def loops(instructions: Code) -> tuple[CodeLoop, ...]:
    """Return the innermost loops that compute. A loop that only waits or copies belongs to the loop
    around it."""
    spans = _spans(instructions)
    innermost = _innermost(spans)
    within = {index for first, last in innermost for index in range(first, last + 1)}
    around: dict[_Span | None, tuple[dict[int, int], ...]] = {None: ()}
    for span in innermost:
        outer = _outer(span, spans)
        if outer is not None and outer not in around:
            outside = (index for index in range(outer[0], outer[1] + 1) if index not in within)
            around[outer] = loads_together([instructions[index] for index in outside])
    return tuple(
        _loop(instructions[first : last + 1], around[_outer((first, last), spans)])
        for first, last in innermost
    )


def _spans(instructions: Code) -> list[_Span]:
    """Return all loops that multiply and add, fused or separately: a conditional product is
    multiplied and added separately."""
    places: dict[str, list[int]] = {}
    for index, each in enumerate(instructions):
        kind = "both" if each.name in _MULTIPLY_AND_ADD else each.name
        places.setdefault(kind, []).append(index)

    def has(kind: str, span: _Span) -> bool:
        found = places.get(kind, [])
        at = bisect_left(found, span[0])
        return at < len(found) and found[at] <= span[1]

    branches = (index for name in ("BRA", "BRX") for index in places.get(name, ()))
    found = {(instructions[index].target, index) for index in branches}
    spans = [(first, last) for first, last in found if first is not None and first < last]
    return sorted(
        span for span in spans if has("both", span) or (has("FMUL", span) and has("FADD", span))
    )


def _innermost(spans: list[_Span]) -> list[_Span]:
    return [
        span
        for span in spans
        if not any(span != other and span[0] <= other[0] and other[1] <= span[1] for other in spans)
    ]


def _outer(span: _Span, spans: Iterable[_Span]) -> _Span | None:
    """Return the smallest loop around a loop."""
    outer = [each for each in spans if each != span and each[0] <= span[0] and span[1] <= each[1]]
    return min(outer, key=lambda each: each[1] - each[0], default=None)


def _loop(body: Code, loads_around: tuple[dict[int, int], ...]) -> CodeLoop:
    numbers = [each.line for each in body if each.line is not None]
    return CodeLoop(
        first_line=min(numbers, default=None),
        last_line=max(numbers, default=None),
        opcodes=dict(Counter(each.opcode for each in body)),
        waits=waits(body),
        issue_clocks=issue_clocks(body),
        loads_around=loads_around,
    )


def badges(launch: LaunchLine, instructions: dict[str, int]) -> tuple[Badge, ...]:
    """Return the badges for the launch, and for the cores if the machine code could be read."""
    launched = Badge.DEFAULT_LAUNCH if launch.is_default else Badge.DECLARED_LAUNCH
    if not instructions:
        return (launched,)
    tensor = any(opcode.startswith(_TENSOR_OPCODES) for opcode in instructions)
    return (Badge.TENSOR_CORES if tensor else Badge.CUDA_CORES, launched)
