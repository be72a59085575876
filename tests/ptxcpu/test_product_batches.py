"""Several products of tensor cores in one basic block: each sees the registers as they stand."""

import numpy as np
import pytest

from harness.ptxcpu.arguments import Buffer, ParameterKind
from tests.ptxcpu.programs import entry, kernel_of
from tests.ptxcpu.runner import KERNELS

PROGRAM = (KERNELS / "product_batches.ptx.in").read_text()
SUMS, OTHERS = "{%c0,%c1,%c2,%c3}", "{%e0,%e1,%e2,%e3}"


def mma(d: str = SUMS, c: str = SUMS, a: str = "{%a0,%a1}") -> str:
    """Add 8 to every sum, while all of A are 2 and all of B are 1."""
    return f"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {d}, {a}, {{%b0}}, {c};"


def for_each(registers: str, text: str) -> str:
    return " ".join(text.replace("X", f"%{registers}{i}").replace("#", str(i)) for i in range(4))


FILL = """mov.u32 %s1, rows; shl.b32 %s2, %r1, 2; add.u32 %s2, %s1, %s2;
mov.b32 %s3, 0f40000000; st.shared.b32 [%s2], %s3;
mov.b32 %s3, 0f40400000; st.shared.b32 [%s2+128], %s3;
bar.sync 0; shl.b32 %s2, %r1, 4; add.u32 %s2, %s1, %s2;
"""
"""Fills a matrix with 2 and the next one with 3, and makes the address of a row of theirs."""
LOAD = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%a0,%a1}, [%s2];"

BODIES = {
    "in a row": (mma() + mma() + mma(), 24, 0),
    "an operand changes": (mma() + "mov.b32 %a0, 0f40800000; mov.b32 %a1, %a0;" + mma(), 24, 0),
    "sums change": (mma() + for_each("c", "add.f32 X, X, 0f42C80000;") + mma(), 116, 0),
    "sums are copied": (mma() + for_each("e", "mov.f32 X, %c#;") + mma(), 16, 8),
    "sums are replaced": (mma() + for_each("c", "mov.f32 X, 0f3F800000;") + mma(), 9, 0),
    "two kinds of sums": (mma() + mma(OTHERS, OTHERS) + mma() + mma(OTHERS, OTHERS), 16, 16),
    "sums go elsewhere": (mma() + mma(OTHERS, SUMS) + mma(), 16, 16),
    "sums are an operand": (mma() + mma(OTHERS, OTHERS, "{%c0,%c1}"), 8, 32),
    "in a loop": (f"AGAIN: {mma()}{mma()} add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 3;"
                  "@%p2 bra AGAIN;", 48, 0),
    "one with a guard": (mma() + f"@%p1 {mma()} @%p2 {mma()}" + mma(), 24, 0),
    "loaded": (FILL + LOAD + mma(), 8, 0),
    "loaded twice": (FILL + LOAD + mma() + "add.u32 %s2, %s2, 128;" + LOAD + mma(), 20, 0),
    "loaded, and exchanged": (FILL + LOAD + mma(OTHERS, OTHERS, "{%a1,%a0}") + mma(), 8, 8),
    "loaded, and replaced": (FILL + LOAD + "mov.b32 %a0, 0f40800000;" + mma(), 16, 0),
    "loaded, and stored over": (FILL + LOAD + "st.shared.b32 [%s2], %b0;" + mma(), 8, 0),
    "a shuffle between": (mma() + "shfl.sync.idx.b32 %r3, %b0, 0, 31, -1;" + mma(), 16, 0),
}  # fmt: skip
"""What is executed, and the sums then."""


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_products_see_registers_as_they_stand(name: str, watched: bool) -> None:
    body, sums, others = BODIES[name]
    clear = for_each("c", "mov.f32 X, 0f00000000;") + for_each("e", "mov.f32 X, 0f00000000;")
    text = PROGRAM.replace("BODY", body).replace("CLEAR", clear)
    program = entry("u64 out", text, ".shared .align 16 .b8 rows[512];")
    out = np.zeros((32, 2), np.float32)
    kernel = kernel_of(program, [ParameterKind.WRITABLE], watched=watched)
    assert kernel.run((1, 1, 1), [Buffer(out, writable=True)]).fault is None
    assert np.array_equal(out, [[sums, others]] * 32)
