"""Sanitize: memcheck, racecheck, initcheck and synccheck on small awkward shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.findings import merged
from harness.progress import Progress
from harness.protocol.device import BackgroundSanitizer, Device, Sanitize, Sanitized
from harness.protocol.request import Fault
from harness.report import (
    Counterexample,
    Finding,
    Hazard,
    MemoryFault,
    Outcome,
    Race,
    Sanitizing,
    Stage,
    Tool,
    ToolRun,
)
from harness.stages.outcomes import launch_outcome
from problem.cases import Shape
from problem.launcher import LaunchLine

SMALL_FLOP = 1 << 26
"""A larger case takes an instrumented kernel minutes."""

HANG_SECONDS = 2.0
"""A barrier that some threads missed shows at once."""

_RACES = (Hazard.RACE, Hazard.DIVERGENT_BARRIER, Hazard.DEADLOCK)


@dataclass(frozen=True, slots=True)
class SanitizerResults:
    """What all programs found together."""

    programs: tuple[Sanitizing, ...]
    findings: tuple[Finding, ...]


def sanitize_shapes(launch: LaunchLine) -> tuple[Shape, ...]:
    """Shapes that take a kernel through its edges and, in more than one block, its inside."""
    rows, columns = (max(16, size) for size in (launch.tile_rows, launch.tile_columns))
    return (
        Shape(17, 33, 18),
        Shape(rows, 64, columns),
        Shape(rows + 17, 67, columns + 5),
    )


def sanitize(
    device: Device,
    beside: BackgroundSanitizer | None,
    launch: LaunchLine,
    *,
    quick: bool,
    failed_at: Shape | None,
    seconds: float,
    progress: Progress,
) -> SanitizerResults | Outcome:
    """Run the tools of the device, and of the CPU device beside a GPU.

    beside: has the CPU device sanitize at the same time; what it cannot do is no fault of the
    kernel. failed_at: where verification went wrong; it is sanitized first. seconds:
    limit for one device.
    """
    tools = (Tool.MEMCHECK, Tool.RACECHECK) if quick else tuple(Tool)
    shapes = sanitize_shapes(launch)[: 1 if quick else None]
    if failed_at is not None and failed_at.flop <= SMALL_FLOP:
        shapes = (failed_at, *shapes)
    request = Sanitize(shapes=shapes, tools=tools, seconds=seconds)
    progress.begin(Stage.SANITIZE, None)
    progress.step(", ".join(tools))
    asked = beside.sanitize(request) if beside is not None else None
    answer = device.ask(request)
    if isinstance(answer, Fault):
        return launch_outcome(answer, shapes[0], seconds, Stage.SANITIZE)
    programs = [Sanitizing(program=answer.program, shapes=shapes, tools=answer.runs)]
    findings = [*answer.findings]
    if asked is not None:
        progress.step("the CPU device")
        also = asked.result()
        if isinstance(also, Sanitized):
            programs.append(Sanitizing(program=also.program, shapes=shapes, tools=also.runs))
            findings += also.findings
        else:
            programs.append(_unavailable(tools, also.message))
    return SanitizerResults(tuple(programs), merged(findings))


def diagnose_hang(beside: BackgroundSanitizer, shape: Shape) -> MemoryFault | Race | None:
    """What keeps a launch from its end, if it is more than time: a barrier that only some threads
    reach, say. The GPU cannot tell; the CPU device sees each thread."""
    if shape.flop > SMALL_FLOP:
        return None
    asked = beside.sanitize(
        Sanitize(shapes=(shape,), tools=tuple(Tool), seconds=HANG_SECONDS)
    ).result()
    return unsafe(asked.findings, None) if isinstance(asked, Sanitized) else None


def _unavailable(tools: Sequence[Tool], message: str) -> Sanitizing:
    return Sanitizing(
        program="the CPU device",
        shapes=(),
        tools=tuple(
            ToolRun(tool=tool, status="unavailable", seconds=0, message=message) for tool in tools
        ),
    )


def unsafe(
    findings: Sequence[Finding], counterexample: Counterexample | None
) -> MemoryFault | Race | None:
    """The verdict for findings: memory errors come first, for a race may follow from them, and
    barriers before the races that follow from those."""
    memory = [finding for finding in findings if finding.hazard not in _RACES]
    races = [finding for finding in findings if finding.hazard in _RACES]
    races.sort(key=lambda finding: finding.hazard is Hazard.RACE)
    first = [f for f in memory if f.hazard is not Hazard.UNINITIALISED] or races or memory
    if not first:
        return None
    kind = Race if first is races else MemoryFault
    others = [finding for finding in findings if finding not in first]
    return kind(
        stage=Stage.SANITIZE,
        message=first[0].message,
        findings=(*first, *others),
        counterexample=counterexample,
    )
