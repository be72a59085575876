"""What a block of a kernel takes: registers from the machine code, the rest from ptxas.

No attribute of the machine code says how much is spilled; ptxas says it with --verbose, of a
program whose text is the judge's own.
"""

from __future__ import annotations

import re

from harness.compiling.machine_code import EntryPoint
from harness.report import Resources
from problem.launcher import LaunchLine

_FUNCTION = re.compile(r"ptxas info +: Function properties for (\S+)")
_COMPILING = re.compile(r"ptxas info +: Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"ptxas info +: Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def resources(log: str, name: str, entry: EntryPoint, launch: LaunchLine) -> Resources:
    """Of one kernel. Raises RuntimeError where log and machine code do not agree."""
    compiling = function = ""
    stack = stores = loads = registers = shared = 0
    for line in log.splitlines():
        if match := _COMPILING.match(line):
            compiling = match[1]
        elif match := _FUNCTION.match(line):
            function = match[1]
        elif (match := _STACK.search(line)) and function == name:
            stack, stores, loads = (int(value) for value in match.groups())
        elif (match := _USED.match(line)) and compiling == name:
            registers = int(match[1])
            smem = _SHARED.search(line)
            shared = int(smem[1]) if smem else 0
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
