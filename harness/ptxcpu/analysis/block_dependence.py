"""An analysis of whether a kernel's blocks may depend on one another, and through which memory. If
they do, running only some of them is no test."""

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.analysis.pointers import pointer_windows
from harness.ptxcpu.ptx.effects import is_ordered
from harness.ptxcpu.ptx.syntax import Address, Instruction, Register, Symbol
from harness.ptxcpu.runtime.layout import Window

_ELSEWHERE = {"shared", "shared::cta", "shared::cluster", "local", "param", "const"}


def exchanged_windows(kernel: InlinedKernel) -> frozenset[int]:
    """Return the memories through which one block may depend on another: those on which the
    kernel uses atomics, the variables that it writes, and the buffers that it writes and reads. If
    there are none, blocks do not depend on one another.

    A store alone makes no block wait for another, regardless of its memory order. The
    result may contain too many memories: an ordered load through a pointer of unknown origin counts
    for all of them.
    """
    windows = pointer_windows(kernel)
    everything = kernel.writable_windows | {int(Window.MODULE)}
    found: set[int] = set()

    def window(item: Instruction) -> int | None:
        for operand in item.operands:
            if isinstance(operand, Address):
                if isinstance(operand.base, Register):
                    return windows.get(operand.base.name)
                if isinstance(operand.base, Symbol):
                    return Window.MODULE
        return None

    for item in kernel.body:
        if not isinstance(item, Instruction):
            continue
        root, *modifiers = item.opcode.split(".")
        if set(modifiers) & _ELSEWHERE or root not in ("ld", "st", "atom", "red"):
            continue
        where = window(item)
        if root in ("atom", "red"):
            is_exchanged = where != Window.SHARED
        elif root == "ld":
            is_exchanged = where in kernel.writable_windows or (where is None and is_ordered(item))
        else:
            is_exchanged = bool(kernel.module.variables) and where in (None, Window.MODULE)
        if is_exchanged:
            found |= everything if where is None else {where}
    return frozenset(found)
