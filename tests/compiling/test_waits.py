"""Which instruction of a loop waits for which, in machine code of our own."""

from __future__ import annotations

import pytest

from harness.compiling.disassembly import Instruction
from harness.compiling.waits import waits
from harness.protocol.report import Producer

LOADS = ("LDG.E R2,desc[UR6][R8.64]", "LDG.E R3,desc[UR6][R10.64]")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # Who waits for the second load has waited for the first.
        ((*LOADS, "FADD R5,R3,R7", "FADD R6,R2,R7"), [(Producer.GLOBAL, 1, 2)]),
        # What is loaded in one iteration is used in the next.
        (("FADD R5,R2,R7", "NOP", LOADS[0]), [(Producer.GLOBAL, -1, 0)]),
        # Copies count as loads, and a group that may stay open is not waited for.
        (
            ("LDGSTS.E [R1],desc[UR6][R8.64]", "LDGDEPBAR", "DEPBAR.LE SB0,0x1", "NOP"),
            [(Producer.GLOBAL, -3, 2)],
        ),
        (("F2F.F64.F32 R2,R8", "DADD R4,R2,R10"), [(Producer.SPECIAL, 0, 1)]),
        (("LDS.128 R4,[R20]", "FADD R9,R7,R8"), [(Producer.SHARED, 0, 1)]),
    ],
)
def test_an_instruction_waits_for_what_it_reads(
    code: tuple[str, ...], expected: list[tuple[Producer, int, int]]
) -> None:
    body = []
    for text in code:
        opcode, _, operands = text.partition(" ")
        body.append(Instruction(opcode, operands, None, None))
    assert [each[:3] for each in waits(body)] == expected
