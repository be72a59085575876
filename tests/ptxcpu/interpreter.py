"""An exact interpreter of PTX kernels without barriers, which runs one thread after another."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.ptx.syntax import (
    Address,
    Float,
    Function,
    Instruction,
    Integer,
    Label,
    Not,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
)
from tests.ptxcpu import oracle


@dataclass
class Launch:
    """The arrays by their addresses, the kernel's arguments and the shape of a launch."""

    arrays: dict[int, np.ndarray]
    arguments: list[int]
    block: tuple[int, int, int]
    grid: tuple[int, int, int] = (1, 1, 1)
    most_steps: int = 100_000


def interpret(text: str, launch: Launch) -> None:
    """Run every thread of every block, and change the arrays in place."""
    (function,) = parse(text).functions.values()
    labels = {x.name: i for i, x in enumerate(function.body) if isinstance(x, Label)}
    for place in np.ndindex(*launch.grid[::-1]):
        for thread in np.ndindex(*launch.block[::-1]):
            _Thread(function, labels, launch, thread[::-1], place[::-1]).run()


@dataclass
class _Thread:
    function: Function
    labels: dict[str, int]
    launch: Launch
    thread: tuple[int, ...]
    place: tuple[int, ...]
    registers: dict[str, int] = field(default_factory=dict)

    def run(self) -> None:
        at = steps = 0
        body = self.function.body
        while at < len(body):
            item = body[at]
            at += 1
            steps += 1
            assert steps < self.launch.most_steps
            if isinstance(item, Label) or (item.guard and not self.read(item.guard)):
                continue
            root = item.opcode.split(".")[0]
            if root == "ret":
                return
            if root == "bra":
                target = item.operands[0]
                assert isinstance(target, Symbol)
                at = self.labels[target.name]
            else:
                self.execute(root, item)

    def execute(self, root: str, item: Instruction) -> None:
        first, *rest = item.operands
        if root == "st":
            array, at, n = self.memory(item, first)
            array[at : at + n] = np.frombuffer(
                (self.read(rest[0]) & (1 << 8 * n) - 1).to_bytes(n, "little"), np.uint8
            )
            return
        if root == "ld":
            if ".param" in item.opcode:
                assert isinstance(rest[0], Address) and isinstance(rest[0].base, Symbol)
                names = [p.name for p in self.function.parameters]
                self.write(first, self.launch.arguments[names.index(rest[0].base.name)])
                return
            array, at, n = self.memory(item, rest[0])
            self.write(first, int.from_bytes(array[at : at + n].tobytes(), "little"))
            return
        if root == "cvta":
            self.write(first, self.read(rest[0]))
            return
        result = oracle.evaluate(item.opcode, [self.read(x) for x in rest])
        if isinstance(first, Pair):
            assert result.second is not None
            self.write(first.first, result.bits)
            self.write(first.second, result.second)
        else:
            self.write(first, result.bits)

    def memory(self, item: Instruction, operand: Operand) -> tuple[np.ndarray, int, int]:
        assert isinstance(operand, Address) and isinstance(operand.base, Register)
        address = self.read(operand.base) + operand.offset
        n = int(item.opcode.rpartition(".")[2][1:]) // 8
        for start, array in self.launch.arrays.items():
            if start <= address <= start + array.nbytes - n:
                return array.reshape(-1).view(np.uint8), address - start, n
        raise AssertionError(f"{item.text}: {address:#x} is outside every array")

    def read(self, operand: Operand) -> int:
        match operand:
            case Register(name):
                return self.registers.get(name, 0)
            case Not(register):
                return 1 - self.read(register)
            case Integer(value):
                return value % (1 << 64)
            case Float(bits, _):
                return bits
            case Special(name):
                kind, _, axis = name.partition(".")
                of = {
                    "tid": self.thread,
                    "ctaid": self.place,
                    "ntid": self.launch.block,
                    "nctaid": self.launch.grid,
                }
                return int(of[kind]["xyz".index(axis)])
        raise AssertionError(f"no value: {operand}")

    def write(self, operand: Operand, value: int) -> None:
        assert isinstance(operand, Register)
        bits = self.function.registers[operand.name].bits
        self.registers[operand.name] = value & (1 << bits) - 1
