"""Tells which registers an instruction reads and writes, and whether it does anything else."""

from collections.abc import Iterator

from harness.ptxcpu.ptx.syntax import (
    Address,
    Coordinates,
    Group,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Vector,
)

COMPUTED = {
    *("abs", "add", "addc", "and", "bfe", "bfi", "bfind", "brev", "clz", "cnot", "fns"),
    *("copysign", "cos", "cvt", "cvta", "div", "dp2a", "dp4a", "ex2", "fence", "fma", "lg2"),
    *("lop3", "mad", "mad24", "max", "membar", "min", "mov", "mul", "mul24", "neg", "not", "or"),
    *("popc", "prefetch", "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp"),
    *("shf", "shl", "shr", "sin", "slct", "sqrt", "sub", "subc", "tanh", "testp", "xor"),
    *("vabsdiff2", "vabsdiff4", "vadd2", "vadd4", "vmax2", "vmax4", "vmin2", "vmin4"),
    *("vset2", "vset4", "vsub2", "vsub4"),
}
"""Instructions whose results depend only on their operands."""


_ORDERED = {"volatile", "relaxed", "acquire", "release", "acq_rel"}

_NO_RESULT = {
    *("st", "bra", "brx", "ret", "exit", "bar", "barrier", "membar", "fence", "trap", "red"),
    *("cp", "prefetch", "prefetchu", "brkpt", "discard", "applypriority", "nanosleep", "pmevent"),
}
"""Instructions that write no register. A barrier does so if it reduces, as `bar.red` does."""


def is_ordered(item: Instruction) -> bool:
    """Return whether other threads may learn the order of an access to memory."""
    return not _ORDERED.isdisjoint(item.opcode.split("."))


def registers_of(item: Instruction) -> set[str]:
    """Return the registers that an instruction reads or writes."""
    operands = item.operands if item.guard is None else (*item.operands, item.guard)
    return {name for operand in operands for name in _registers(operand)}


def written_by(item: Instruction) -> tuple[str, ...]:
    """Return the registers that an instruction writes."""
    if not item.operands:
        return ()
    if item.opcode.partition(".")[0] in _NO_RESULT and ".red." not in item.opcode:
        return ()
    first = item.operands[0]
    return tuple(_registers(first)) if isinstance(first, Register | Pair | Vector) else ()


def read_by(item: Instruction) -> set[str]:
    """Return the registers that an instruction reads."""
    operands = item.operands[1:] if written_by(item) else item.operands
    sources = operands if item.guard is None else (*operands, item.guard)
    return {name for operand in sources for name in _registers(operand)}


def _registers(operand: Operand) -> Iterator[str]:
    match operand:
        case Register():
            yield operand.name
        case Not():
            yield operand.register.name
        case Pair():
            yield from _registers(operand.first)
            yield from _registers(operand.second)
        case Address():
            yield from _registers(operand.base)
        case Coordinates():
            yield from _registers(operand.base)
            for item in operand.items:
                yield from _registers(item)
        case Vector() | Group():
            for item in operand.items:
                yield from _registers(item)
