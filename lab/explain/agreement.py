"""A table of differences between the CPU device's counts and a GPU's own counters."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.judge import figures
from harness.protocol.compiler import Kernel
from harness.protocol.profile import Profile, ProfileLine
from harness.protocol.report import CodeLine, Counters, LineCounters
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.ptx.syntax import Instruction, Integer
from lab.explain.records import Recording

QUANTITIES: dict[str, Callable[[ProfileLine | LineCounters], int]] = {
    "sectors": lambda line: line.global_sectors,
    "L1 passes": lambda line: line.global_passes,
    "shared wavefronts": lambda line: line.shared_wavefronts,
    "fewest possible": lambda line: line.shared_min_wavefronts,
}
"""What both count of a line. The ideal number of sectors is left out: where lanes read the same
word, `ncu` takes it to be as many as if each read a word of its own."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of which one side counts more than the other."""

    line: int
    quantity: str
    hardware: int
    cpu: int


def differences(profile: Profile, counters: Counters) -> tuple[Difference, ...]:
    """Return the differences of a whole launch, by source line; empty if both counts agree."""
    theirs = {line.line: line for line in profile.lines}
    ours = {line.line: line for line in counters.lines}
    found = []
    for number in sorted(theirs.keys() | ours.keys()):
        for name, of in QUANTITIES.items():
            hardware = of(theirs[number]) if number in theirs else 0
            cpu = of(ours[number]) if number in ours else 0
            if hardware != cpu:
                found.append(Difference(number, name, hardware, cpu))
    return tuple(found)


class Cause(StrEnum):
    """Why a line differs, as far as we know."""

    WAITING = "who waits for another block looks as often as time allows"
    PREDICATE = "of a copy past L1 under a predicate, `ncu` asks the wrong lanes"
    MACHINE_CODE = "machine code loads once, or elsewhere, what PTX loads here"
    UNKNOWN = "for a reason that is not known"


def cause(kernel: Kernel, code: Iterable[CodeLine], found: Difference) -> Cause:
    """code: what its lines became."""
    here = next((each for each in code if each.line == found.line), None)
    opcodes = here.opcodes if here is not None else {}
    if found.hardware == 0 and any(each.startswith("LDGSTS.E.BYPASS") for each in opcodes):
        return Cause.PREDICATE
    if not found.quantity.startswith(("shared", "fewest")):
        looks = any(each.startswith("ATOMG") or ".STRONG" in each for each in opcodes)
        return Cause.WAITING if looks else Cause.UNKNOWN
    same = _widths_in_machine_code(opcodes) == _widths_in_ptx(kernel.ptx)[found.line]
    return Cause.UNKNOWN if same else Cause.MACHINE_CODE


def _widths_in_machine_code(opcodes: Mapping[str, int]) -> Counter[int]:
    """Bytes that a thread loads, stores or changes in shared memory, by instruction."""
    widths: Counter[int] = Counter()
    for opcode, count in opcodes.items():
        if opcode.partition(".")[0] in ("LDS", "STS", "ATOMS", "LDGSTS"):
            bits = re.search(r"\d+$", opcode)
            widths[int(bits[0]) // 8 if bits else 4] += count
    return widths


@functools.lru_cache(1)
def _widths_in_ptx(ptx: str) -> Mapping[int, Counter[int]]:
    """The same by source line."""
    widths: dict[int, Counter[int]] = defaultdict(Counter)
    for function in parse(ptx).functions.values():
        for each in function.body:
            if not isinstance(each, Instruction):
                continue
            kind, *modifiers = each.opcode.split(".")
            if kind not in ("ld", "st", "atom", "red", "cp") or "shared" not in modifiers:
                continue
            if kind == "cp":
                size = next(one.value for one in each.operands if isinstance(one, Integer))
            else:
                words = re.search(r"\.v(\d)", each.opcode)
                bits = re.search(r"\d+$", each.opcode)
                size = (int(words[1]) if words else 1) * (int(bits[0]) // 8 if bits else 4)
            widths[each.line][size] += 1
    return widths


def markdown(
    recording: Recording,
    recorded: Mapping[str, Sequence[Profile]],
    counted: Mapping[str, Sequence[Counters]],
    kernels: Mapping[str, Kernel],
    code: Mapping[str, Sequence[CodeLine]],
) -> str:
    """recorded: the launches of kernels whose source is still the same.
    counted: of these, by the CPU device, at the same sizes in the same order.
    code: what the lines of these became."""
    days = sorted({str(record.date) for record in recording.kernels.values()})
    head = (
        "# The CPU device's counters beside the hardware's",
        "",
        f"Hardware counters of an {recording.gpu}, {' and '.join(days)}, through `ncu`; the CPU",
        "device ran every block of the same launch. They are compared line by line: `equal` where",
        "no line differs in any of the four. Written by `python3 -m harness counters`.",
        "",
        "| kernel | size | " + " | ".join(QUANTITIES) + " | difference |",
        "|---|---|" + "---:|" * len(QUANTITIES) + "---|",
    )
    rows: list[str] = []
    details: list[str] = []
    for name in recording.kernels:
        if name not in recorded:
            cells = [name, "", *[""] * len(QUANTITIES), "recorded of another source"]
            rows.append("| " + " | ".join(cells) + " |")
        for profile, counters in zip(recorded.get(name, ()), counted.get(name, ()), strict=True):
            found = differences(profile, counters)
            groups = _by_cause(kernels[name], code[name], found)
            totals = [sum(map(of, profile.lines)) for of in QUANTITIES.values()]
            cells = [name, str(profile.shape), *map(figures.grouped, totals), _said(groups)]
            rows.append("| " + " | ".join(cells) + " |")
            details += _details(name, profile, groups)
    return "\n".join([*head, *rows, *_differing(details)]) + "\n"


_Groups = dict[Cause, list[Difference]]


def _by_cause(kernel: Kernel, code: Sequence[CodeLine], found: Iterable[Difference]) -> _Groups:
    groups: _Groups = {}
    for each in found:
        groups.setdefault(cause(kernel, code, each), []).append(each)
    return groups


def _said(groups: _Groups) -> str:
    """How many lines differ, and why."""
    lines = {why: len({each.line for each in found}) for why, found in groups.items()}
    told = (f"{count} line{'s' * (count > 1)}: {why}" for why, count in lines.items())
    return "; ".join(told) or "equal"


def _details(name: str, profile: Profile, groups: _Groups) -> Iterator[str]:
    for why, found in groups.items():
        for quantity in QUANTITIES:
            lines = [each for each in found if each.quantity == quantity]
            if not lines:
                continue
            hardware = sum(each.hardware for each in lines)
            cpu = sum(each.cpu for each in lines)
            most = max(lines, key=lambda each: abs(each.hardware - each.cpu)).line
            yield (
                f"| {name} | {profile.shape} | {why} | {quantity} | {len(lines)} | {most} | "
                f"{figures.grouped(hardware)} | {figures.grouped(cpu)} |"
            )


def _differing(rows: list[str]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        "## Lines that differ",
        "",
        "| kernel | size | why | what | lines | most of it | hardware | CPU device |",
        "|---|---|---|---|---:|---:|---:|---:|",
        *rows,
    ]
