"""What a block of a kernel takes: registers from the machine code, the rest from ptxas.

No attribute of the machine code says how much is spilled; ptxas says it with --verbose, of a
program whose text is the judge's own.
"""

from __future__ import annotations

import re

from harness.compiling.machine_code import EntryPoint
from harness.protocol.report import Resources
from problem.launcher import LaunchLine

_COMPILING = re.compile(r"ptxas info +: Compiling entry function '([^']+)'")
_SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"ptxas info +: Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")


def resources(log: str, name: str, entry: EntryPoint, launch: LaunchLine) -> Resources:
    """Of one kernel. After it ptxas tells what each function spills that it can call: its registers
    and its stack are those of all. Raises RuntimeError where log and machine code do not agree."""
    compiling = ""
    stack = stores = loads = registers = shared = 0
    for line in log.splitlines():
        if match := _COMPILING.match(line):
            compiling = match[1]
        elif compiling != name:
            continue
        elif match := _SPILLED.search(line):
            stores += int(match[1])
            loads += int(match[2])
        elif match := _USED.match(line):
            registers, shared, stack = int(match[1]), _bytes(_SHARED, line), _bytes(_STACK, line)
    if registers != entry.registers:
        raise RuntimeError(
            f"ptxas reports {registers} registers for {name}, its machine code {entry.registers}"
        )
    return Resources(
        registers=registers,
        stack_bytes=stack,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        static_shared_bytes=shared,
        dynamic_shared_bytes=launch.shared_memory,
    )


def _bytes(what: re.Pattern[str], line: str) -> int:
    match = what.search(line)
    return int(match[1]) if match else 0
