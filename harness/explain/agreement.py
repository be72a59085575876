"""What the CPU device counts beside what a GPU's own counters say: a table of differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness import figures
from harness.protocol.compiler import Kernel
from harness.protocol.profile import Profile, ProfileLine, Profiles
from harness.report import Counters, LineCounters

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
    """Of a whole launch, by source line; empty where both sides count the same."""
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

    PREDICATE = "copies under a predicate"
    ORDER = "order, or place in memory"


def cause(kernel: Kernel, found: Difference) -> Cause:
    here = next((each for each in kernel.facts.lines if each.line == found.line), None)
    opcodes = here.opcodes if here is not None else ()
    unseen = found.hardware == 0 and any(each.startswith("LDGSTS.E.BYPASS") for each in opcodes)
    return Cause.PREDICATE if unseen else Cause.ORDER


def markdown(
    profiles: Profiles,
    counted: Mapping[str, Iterable[Counters]],
    kernels: Mapping[str, Kernel],
) -> str:
    """counted: by the CPU device, at the same sizes in the same order, of the kernels to show."""
    head = (
        "# The CPU device's counters beside the hardware's",
        "",
        f"Hardware counters of an {profiles.gpu}, {profiles.date}, through `ncu`; the CPU device",
        "ran every block of the same launch. They are compared line by line: `equal` where no line",
        "differs in any of the four. Written by `python3 -m harness counters`.",
        "",
        "| kernel | size | " + " | ".join(QUANTITIES) + " | difference |",
        "|---|---|" + "---:|" * len(QUANTITIES) + "---|",
    )
    rows: list[str] = []
    differing: list[str] = []
    for name, launches in counted.items():
        for profile, counters in zip(profiles.profiles[name], launches, strict=True):
            found = differences(profile, counters)
            totals = [sum(map(of, profile.lines)) for of in QUANTITIES.values()]
            number = len({each.line for each in found})
            cells = [name, str(profile.shape), *map(figures.grouped, totals)]
            cells.append(f"{number} line{'s' * (number > 1)}" if found else "equal")
            rows.append("| " + " | ".join(cells) + " |")
            differing += _by_cause(name, profile, kernels[name], found)
    return "\n".join([*head, *rows, *_differing(differing)]) + "\n"


def _by_cause(
    name: str, profile: Profile, kernel: Kernel, found: Iterable[Difference]
) -> Iterator[str]:
    groups: dict[tuple[Cause, str], list[Difference]] = {}
    for each in found:
        groups.setdefault((cause(kernel, each), each.quantity), []).append(each)
    for (why, quantity), lines in groups.items():
        hardware, cpu = (sum(map(side, lines)) for side in (_hardware, _cpu))
        most = max(lines, key=lambda each: abs(each.hardware - each.cpu)).line
        yield (
            f"| {name} | {profile.shape} | {why} | {quantity} | {len(lines)} | {most} | "
            f"{figures.grouped(hardware)} | {figures.grouped(cpu)} |"
        )


def _hardware(each: Difference) -> int:
    return each.hardware


def _cpu(each: Difference) -> int:
    return each.cpu


def _differing(rows: list[str]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        "## Lines that differ",
        "",
        f"* {Cause.PREDICATE.value}: of a copy past the L1 cache that a predicate guards, `ncu`",
        "  asks the wrong lanes: none at all in 21. Where nothing guards it, and of copies through",
        "  the L1 cache, both sides count the same, for all of some 480 patterns of addresses.",
        f"* {Cause.ORDER.value}: a thread that waits for another block looks as often as the time",
        "  allows, and who comes first or last depends on it, too; what a kernel keeps in device",
        "  memory may begin elsewhere in a sector, so that a copy from there goes in other pieces.",
        "",
        "| kernel | size | why | what | lines | most of it | hardware | CPU device |",
        "|---|---|---|---|---:|---:|---:|---:|",
        *rows,
    ]
