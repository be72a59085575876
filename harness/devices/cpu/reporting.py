"""Turns the results of `harness.ptxcpu` into the types of the report."""

from dataclasses import asdict
from typing import Literal

from harness.protocol import report
from harness.protocol.device import LaunchInputs
from harness.protocol.report import Place, Tool
from harness.protocol.request import Fault
from harness.ptxcpu import results
from harness.ptxcpu.results import Hazard
from harness.ptxcpu.runtime.layout import Cause
from problem.cases import Shape

_TOOLS = {
    Hazard.OUT_OF_BOUNDS: Tool.MEMCHECK,
    Hazard.MISALIGNED: Tool.MEMCHECK,
    Hazard.UNINITIALISED: Tool.INITCHECK,
    Hazard.RACE: Tool.RACECHECK,
    Hazard.DIVERGENT_BARRIER: Tool.SYNCCHECK,
    Hazard.EARLY_RETURN: Tool.SYNCCHECK,
    Hazard.DEADLOCK: Tool.SYNCCHECK,
}

_FaultCause = Literal["memory", "deadlock", "trap", "time-limit", "judge"]

_CAUSES: dict[Cause, _FaultCause] = {
    Cause.MEMORY: "memory",
    Cause.TRAP: "trap",
    Cause.DEADLOCK: "deadlock",
    Cause.TIME_LIMIT: "time-limit",
    Cause.ASYNC_OVERFLOW: "judge",
    Cause.BAD_OPERAND: "trap",
    Cause.TRACE_OVERFLOW: "judge",
    Cause.CLUSTER_ORDER: "trap",
    Cause.BARRIER_COUNT: "deadlock",
}


def finding(found: results.Finding, shape: Shape) -> report.Finding:
    row, column = found.index or (None, None)
    return report.Finding(
        tool=_TOOLS[found.hazard],
        hazard=report.Hazard(found.hazard),
        message=found.message,
        at=_place(found.at),
        other=_place(found.other) if found.other else None,
        access=found.access,
        size=found.size,
        array=found.memory,
        row=row,
        column=column,
        bytes_outside=found.bytes_outside,
        shape=shape,
        occurrences=found.occurrences,
    )


def fault(ended: results.Fault, shape: Shape, printed: str) -> Fault:
    found = finding(ended.finding, shape) if ended.finding else None
    cause, at = _CAUSES[ended.cause], _place(ended.at)
    return Fault(cause=cause, message=ended.message, finding=found, at=at, printed=printed)


def changed_inputs(result: results.Result, given: LaunchInputs) -> tuple[str, ...]:
    """Return the names of the inputs to which the kernel wrote other values."""
    return tuple(given.arguments.inputs[index].name for index in result.changed)


def counters(counted: results.Counters, shape: Shape, depends: bool) -> report.Counters:
    """Return the counters of a launch of this shape. depends: whether blocks depend on each
    other."""
    flop = shape.flop * counted.counted_blocks // counted.blocks
    moved = 32 * (counted.global_load_sectors + counted.global_store_sectors)
    return report.Counters(
        shape=shape,
        flop=flop,
        flop_per_global_byte=flop / moved if moved else 0.0,
        blocks_depend=depends,
        **asdict(counted),
    )


def _place(at: results.Location) -> Place:
    return Place(line=at.line, caller=at.caller, thread=at.thread, block=at.block)
