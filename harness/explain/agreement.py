"""What the CPU device counts beside what a GPU's own counters say: a table of differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from harness import figures
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


def markdown(
    profiles: Profiles, counted: Mapping[str, Iterable[Counters]], sources: Mapping[str, str]
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
    rows, differing = [], []
    for name, launches in counted.items():
        for profile, counters in zip(profiles.profiles[name], launches, strict=True):
            found = differences(profile, counters)
            totals = [sum(map(of, profile.lines)) for of in QUANTITIES.values()]
            cells = [name, str(profile.shape), *map(figures.grouped, totals)]
            lines = sorted({each.line for each in found})
            cells.append(f"lines {', '.join(map(str, lines))}" if lines else "equal")
            rows.append("| " + " | ".join(cells) + " |")
            code = sources[name].splitlines()
            differing += [
                f"| {name} | {profile.shape} | {each.line} | {each.quantity} | "
                f"{figures.grouped(each.hardware)} | {figures.grouped(each.cpu)} | "
                f"`{code[each.line - 1].strip()}` |"
                for each in found
            ]
    return "\n".join([*head, *rows, *_differing(differing)]) + "\n"


def _differing(rows: list[str]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        "## Lines that differ",
        "",
        "A thread that waits for another block looks as often as the time allows, and that is "
        "another number in each launch.",
        "",
        "| kernel | size | line | what | hardware | CPU device | source |",
        "|---|---|---:|---|---:|---:|---|",
        *rows,
    ]
