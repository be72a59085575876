"""Whether a program stays inside its parameters: around a kernel's lies what the driver keeps for a
launch, and no compiler reads them at an address that it computes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.protocol.report import Diagnostic
from harness.ptxcpu.ptx.stream import MAX_SAID
from harness.ptxcpu.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Operand,
    Program,
    Symbol,
    symbols,
)

_ACCESS = re.compile(r"(ld|st)\.param(?:::entry|::func)?(?:\.v([248]))?\.[busf]([0-9]{1,3})")
_OF_PARAMETERS = re.compile(r"(?!isspacep).*\.param\b")


def misuse(program: Program) -> Diagnostic | None:
    """An instruction that could leave a parameter."""
    for function in program.functions.values():
        sizes = _sizes(function)
        kernels = {p.name for p in function.parameters} if function.is_entry else set()
        for item in function.body:
            if isinstance(item, Instruction) and not _stays_inside(item, sizes, kernels):
                message = f"`{item.text[:MAX_SAID]}` does not stay inside a parameter"
                return Diagnostic(severity="error", message=message, line=item.line or None)
    return None


def _sizes(function: Function) -> dict[str, int]:
    """Return the sizes of a function's own parameters, and of those that it gives to others."""
    given = (v for v in function.variables.values() if v.space == "param")
    return {v.name: v.size for v in (*function.parameters, *function.results, *given)}


def _stays_inside(item: Instruction, sizes: dict[str, int], kernels: set[str]) -> bool:
    """kernels: names that only the place of a load may mention."""
    access = _ACCESS.fullmatch(item.opcode)
    if access is None:
        return not _OF_PARAMETERS.match(item.opcode) and not _names(item.operands) & kernels
    if not item.operands:
        return False
    *values, place = item.operands if access[1] == "ld" else reversed(item.operands)
    if not isinstance(place, Address) or not isinstance(place.base, Symbol):
        return False
    size = int(access[2] or 1) * int(access[3]) // 8
    inside = 0 <= place.offset <= sizes.get(place.base.name, -1) - size
    return inside and not _names(values) & kernels


def _names(operands: Iterable[Operand]) -> set[str]:
    return {name for operand in operands for name in symbols(operand)}
