"""Whether a kernel's blocks may depend on one another, so that running some of them is no test."""

from __future__ import annotations

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.analysis.pointers import pointer_windows
from harness.ptxcpu.ptx.syntax import Address, Instruction, Register, Symbol
from harness.ptxcpu.runtime.layout import Window

_ORDERED = {"volatile", "acquire", "release", "relaxed", "acq_rel"}
_ELSEWHERE = {"shared", "shared::cta", "shared::cluster", "local", "param", "const"}


def blocks_depend_on_one_another(kernel: InlinedKernel) -> bool:
    """Whether the kernel uses atomics or variables in global memory, or reads a buffer that it may
    write.

    A store alone makes no block wait for another, however it is ordered. Errs on the side of True:
    an ordered load through a pointer of unknown origin may lead anywhere.
    """
    windows = pointer_windows(kernel)
    has_variables = bool(kernel.module.variables)

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
        if where == Window.SHARED:
            continue
        if root in ("atom", "red"):
            return True
        is_ordered = not _ORDERED.isdisjoint(modifiers)
        may_be_written = where in kernel.writable_windows or (where is None and is_ordered)
        if root == "ld" and may_be_written:
            return True
        if root == "st" and has_variables and where in (None, Window.MODULE):
            return True
    return False
