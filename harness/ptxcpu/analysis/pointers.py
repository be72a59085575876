"""Finds the array that each pointer register points into, if that is known statically.

An access through such a register is checked against that array only, which takes a few machine
instructions outside the loop and one comparison inside. Other pointers are looked up at run time,
so this analysis affects only the speed.
"""

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.ptx.effects import written_by
from harness.ptxcpu.ptx.syntax import Address, Instruction, Operand, Register, Symbol, Vector
from harness.ptxcpu.runtime.layout import Window

# What a register holds: the window it points into, a plain number, or something else.
NUMBER, OTHER = "number", "other"
Held = int | str

_POINTERS = {
    **{"mov": ({0},), "cvta": ({0},), "add": ({0}, {1}), "sub": ({0},)},
    **{"mad": ({2},), "selp": ({0, 1},)},
}
"""Which sources of an instruction may be pointers, so that its result is one."""


def pointer_windows(kernel: InlinedKernel) -> dict[str, int]:
    """Return the window of each register that always points into the same memory."""
    arrays = kernel.buffer_windows
    held: dict[str, Held] = {}
    changed = True
    while changed:
        changed = False
        for item in kernel.body:
            if not isinstance(item, Instruction):
                continue
            new = _result(kernel, arrays, held, item)
            for name in written_by(item):
                joined = _join(held.get(name), new)
                if joined != held.get(name) and joined is not None:
                    held[name] = joined
                    changed = True
    return {name: what for name, what in held.items() if isinstance(what, int)}


def _join(a: Held | None, b: Held | None) -> Held | None:
    return b if a is None else a if b is None or a == b else OTHER


def _result(
    kernel: InlinedKernel, arrays: dict[str, int], held: dict[str, Held], item: Instruction
) -> Held | None:
    """Return what the instruction's result points into; None while its operands are not known
    yet."""
    root = item.opcode.split(".")[0]
    if root == "ld":
        source = item.operands[1]
        if isinstance(source, Address) and isinstance(source.base, Symbol):
            return arrays.get(source.base.name, NUMBER)
        return NUMBER
    sources = [_held(kernel, held, x) for x in item.operands[1:]]
    if None in sources:
        return None
    if item.opcode == "cvta.shared.u64":
        return Window.SHARED if sources == [NUMBER] else OTHER
    if all(x == NUMBER for x in sources):
        return NUMBER
    pointers = {x for x in sources if x != NUMBER}
    places = {i for i, x in enumerate(sources) if x != NUMBER}
    is_pointer = places in _POINTERS.get(root, ()) and len(pointers) == 1
    if not is_pointer or (root == "cvta" and "global" not in item.opcode):
        return OTHER
    return pointers.pop()


def _held(kernel: InlinedKernel, held: dict[str, Held], operand: Operand) -> Held | None:
    if isinstance(operand, Register):
        return held.get(operand.name)
    if isinstance(operand, Symbol) and operand.name in kernel.module.variables:
        return Window.MODULE
    if isinstance(operand, Vector):
        return NUMBER if all(_held(kernel, held, x) == NUMBER for x in operand.items) else OTHER
    return NUMBER
