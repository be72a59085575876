"""Tests of finding waits of instructions for each other, in short pieces of machine code."""

import pytest

from harness.compiling.waits import Instruction, issue_clocks, loads_together, waits
from harness.protocol.report import Producer


def at(line: int | None, text: str) -> Instruction:
    opcode, _, operands = text.partition(" ")
    return Instruction(opcode, operands, None, line)


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
            [(Producer.GLOBAL, -4, 2)],
        ),
        (("F2F.F64.F32 R2,R8", "DADD R4,R2,R10"), [(Producer.SPECIAL, 0, 1)]),
        (("LDS.128 R4,[R20]", "FADD R9,R7,R8"), [(Producer.SHARED, 0, 1)]),
        # A barrier of the library is asked by a load that only the block's threads share.
        (("LD.E.STRONG.SM R4,[R20.64]", "FADD R9,R4,R8"), [(Producer.SHARED, 0, 1)]),
        (("LD.E R4,[R20.64]", "FADD R9,R4,R8"), [(Producer.GLOBAL, 0, 1)]),
    ],
)
def test_an_instruction_waits_for_its_operands(
    code: tuple[str, ...], expected: list[tuple[Producer, int, int]]
) -> None:
    assert [each[:3] for each in waits([at(7, text) for text in code])] == expected


def test_generic_loads_of_a_library_count_as_shared_memory() -> None:
    """Fragments of wmma load so; the submission's own lines name the memory that they read."""
    body = [at(None, "LD.E R4,[R20.64]"), at(7, "FADD R9,R4,R8")]
    assert [each[:3] for each in waits(body)] == [(Producer.SHARED, 0, 1)]


def test_loads_that_are_waited_for_together_are_one_wait() -> None:
    a, b = at(7, LOADS[0]), at(9, LOADS[1])
    store_a, store_b = at(8, "STS [R20],R2"), at(10, "STS [R21],R3")
    assert loads_together((a, b, store_a, store_b)) == ({7: 1, 9: 1},)
    assert loads_together((a, store_a, b, store_b)) == ({7: 1}, {9: 1})


@pytest.mark.parametrize(
    ("operands", "clocks"),
    [
        # Three registers of one bank take three clocks, two of one and one of the other two.
        ("R8,R2,R4,R6", 3.0),
        ("R8,R2,R3,R5", 2.0),
        # A register that is kept is not read again, so one of each bank is left.
        ("R8,R2.reuse,R4,R5", 1.0),
    ],
)
def test_a_register_bank_delivers_one_register_a_clock(operands: str, clocks: float) -> None:
    assert issue_clocks([at(None, f"FFMA {operands}")] * 100) == pytest.approx(
        100 * clocks, rel=0.05
    )
