"""Watches that a thread reads the sums of wgmma only after it has waited for them.

"Accessing the accumulator register" before wgmma.wait_group has waited for its group "is undefined
behavior" in PTX. Each register of sums has another one for the product that adds to it: its group,
counted from 1, and its instruction. Copies of a register are no accesses, since the compiler makes
them where loops meet: the copy is in flight as well. Neither are writes, which give a register
another value that has nothing to do with the product's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.codegen.llvm_ir import IrValue, constant
from harness.ptxcpu.codegen.operands import MatrixProduct
from harness.ptxcpu.codegen.thread import Lowerings, Mode, Translator
from harness.ptxcpu.ptx.syntax import Instruction, Operand, Register, Vector
from harness.ptxcpu.ptx.types import TYPES, Type
from harness.ptxcpu.runtime.layout import Collective, State

_B64 = TYPES["b64"]
_COMMITTED, _COMPLETE = Register("groups committed"), Register("groups complete")
"""How many groups of products the thread has committed, and waited for."""


class ProductWatcher(Translator):
    """A watched thread that reports each read of a register to which products may add."""

    def __init__(
        self, kernel: InlinedKernel, lowerings: Lowerings, block: tuple[int, int, int]
    ) -> None:
        self._products_of = {name: Register(f"product of {name}") for name in _summed(kernel)}
        self._added = [*self._products_of.values(), _COMMITTED, _COMPLETE]
        registers = kernel.registers | {each.name: _B64 for each in self._added}
        super().__init__(replace(kernel, registers=registers), lowerings, block, Mode.WATCH)
        self._index = 0
        self._written: IrValue | None = None
        """The product of the value that is written; None if it is no sum of one."""
        self._multiplies = False

    def statements(self) -> None:
        for register in self._added:
            super().write(register, constant("i64", 0))
        super().statements()

    def statement(self, index: int, item: Instruction) -> None:
        self._index = index
        copy = _copy(item)
        if copy is not None and copy[1].name in self._products_of:
            self._written = super().read(self._products_of[copy[1].name], _B64)
        super().statement(index, item)
        self._written, self._multiplies = None, False

    def multiply(self, index: int, product: MatrixProduct) -> None:
        for item in product.a:
            self._report(item)
        self._multiplies = True
        self._written = self._begun_product()
        super().multiply(index, product)
        self.finish_products()  # its sums are noted for this product

    def load_matrices(
        self, index: int, variant: int, to: Sequence[Operand], where: IrValue
    ) -> None:
        super().load_matrices(index, variant, to, where)
        self.finish_products()

    def suspend(self, index: int, state: State, phase: int = 0, **cells: IrValue | int) -> None:
        super().suspend(index, state, phase, **cells)
        if self._multiplies:  # no value outlasts a wait
            self._written = self._begun_product()

    def _begun_product(self) -> IrValue:
        group = self.op("add", super().read(_COMMITTED, _B64), 1)
        return self.op("or", self.op("shl", group, 32), self._index)

    def read(self, operand: Operand, type_: Type) -> IrValue:
        if self._written is None:
            self._report(operand)
        return super().read(operand, type_)

    def write(self, operand: Operand, value: IrValue, signed: bool = False) -> None:
        super().write(operand, value, signed)
        if isinstance(operand, Register) and operand.name in self._products_of:
            product = constant("i64", 0) if self._written is None else self._written
            super().write(self._products_of[operand.name], product)

    def _report(self, operand: Operand) -> None:
        if isinstance(operand, Register) and operand.name in self._products_of:
            product = super().read(self._products_of[operand.name], _B64)
            complete = super().read(_COMPLETE, _B64)
            self.tell("rt_read_sum", self._index, product, complete)

    def collective(
        self,
        index: int,
        which: Collective,
        words: list[IrValue],
        results: int = 0,
        mask: IrValue | int = -1,
        argument: IrValue | int = 0,
        phase: int = 0,
    ) -> list[IrValue]:
        given = super().collective(index, which, words, results, mask, argument, phase)
        committed = super().read(_COMMITTED, _B64)
        if which is Collective.WGMMA_COMMIT:
            super().write(_COMMITTED, self.op("add", committed, 1))
        if which is Collective.WGMMA_WAIT:
            complete = self.op("sub", committed, argument)
            known = super().read(_COMPLETE, _B64)
            super().write(_COMPLETE, self.intrinsic("smax", complete, known))
        return given


def watches_products(kernel: InlinedKernel) -> bool:
    """Return whether the kernel has products that a thread must wait for."""
    return next(_sums(kernel), None) is not None


def _sums(kernel: InlinedKernel) -> Iterator[Operand]:
    for item in kernel.body:
        if isinstance(item, Instruction) and item.opcode.startswith("wgmma.mma_async"):
            sums = item.operands[0]
            yield from sums.items if isinstance(sums, Vector) else ()


def _summed(kernel: InlinedKernel) -> set[str]:
    """Return the registers to which products add, and those to which these are copied."""
    copies: dict[str, set[str]] = {}
    for item in kernel.body:
        if isinstance(item, Instruction) and (copy := _copy(item)):
            to, source = copy
            copies.setdefault(source.name, set()).add(to.name)
    found: set[str] = set()
    new = {item.name for item in _sums(kernel) if isinstance(item, Register)}
    while new:
        found |= new
        new = {to for name in new for to in copies.get(name, ())} - found
    return found


def _copy(item: Instruction) -> tuple[Register, Register] | None:
    """Return to which register an instruction copies which other one; None if it does more."""
    if not item.opcode.startswith("mov.") or len(item.operands) != 2:
        return None
    to, source = item.operands
    return (to, source) if isinstance(to, Register) and isinstance(source, Register) else None
