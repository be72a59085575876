"""Whether a kernel's blocks may depend on one another, so that running some of them is no test."""

from __future__ import annotations

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.analysis.pointers import pointer_windows
from harness.ptxcpu.ptx.syntax import Address, Instruction, Register, Symbol
from harness.ptxcpu.runtime.layout import Window

_ORDERED = {"volatile", "acquire", "release", "relaxed", "acq_rel"}
_ELSEWHERE = {"shared", "shared::cta", "shared::cluster", "local", "param", "const"}


def blocks_depend_on_one_another(kernel: InlinedKernel) -> bool:
    """Whether the kernel uses atomics, flags or variables in global memory, or reads a buffer that
    it may write.

    Errs on the side of True: a pointer of unknown origin may lead anywhere.
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
        if root in ("atom", "red") or set(modifiers) & _ORDERED:
            return True
        if root == "ld" and where in kernel.writable_windows:
            return True
        if root == "st" and has_variables and where in (None, Window.MODULE):
            return True
    return False
