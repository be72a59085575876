"""ldmatrix and stmatrix against the figures of the PTX manual, for each number of matrices."""

import numpy as np
import numpy.typing as npt
import pytest

from harness.ptxcpu.arguments import Buffer, ParameterKind
from tests.ptxcpu.programs import entry, kernel_of

MOVE = """ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16;
add.u64 %rd1, %rd1, %rd2; mov.u32 %r2, tile; mul.lo.u32 %r3, %r1, 16; add.u32 %r4, %r2, %r3;
ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%rd1];
BODY
st.global.v4.u32 [%rd1], {%r5,%r6,%r7,%r8};"""
"""Each lane begins and ends with 16 bytes of the data: a row of a matrix in shared memory."""

LOAD = """st.shared.v4.u32 [%r4], {%r5,%r6,%r7,%r8}; bar.warp.sync -1;
ldmatrix.sync.aligned.m8n8.FORM.shared.b16 {REGISTERS}, [%r4];"""
STORE = """st.shared.v4.u32 [%r4], {%r5,%r6,%r7,%r8}; bar.warp.sync -1;
stmatrix.sync.aligned.m8n8.FORM.shared.b16 [%r4], {REGISTERS}; bar.warp.sync -1;
ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [%r4];"""

Halves = npt.NDArray[np.uint16]


def moved(body: str, data: Halves, number: int, transposed: bool) -> Halves:
    registers = ",".join(f"%r{5 + i}" for i in range(number))
    form = f"x{number}" + (".trans" if transposed else "")
    text = MOVE.replace("BODY", body).replace("FORM", form).replace("REGISTERS", registers)
    program = entry("u64 data", text, ".shared .align 16 .b8 tile[512];")
    words = data.copy().view(np.uint32)
    kernel = kernel_of(program, [ParameterKind.WRITABLE])
    assert kernel.run((1, 1, 1), [Buffer(words, writable=True)]).fault is None
    return words.view(np.uint16)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_fragments_have_the_layout_of_the_manual(number: int, transposed: bool) -> None:
    data = np.arange(256, dtype=np.uint16)
    in_memory, in_registers = data.reshape(4, 8, 8), data.reshape(32, 4, 2)
    rows, columns = np.arange(32) // 4, np.arange(32) % 4 * 2
    if transposed:
        rows, columns = columns, rows
    loaded, stored = in_registers.copy(), in_memory.copy()
    for matrix in range(number):
        for element in range(2):
            down, right = (element, 0) if transposed else (0, element)
            place = rows + down, columns + right
            loaded[:, matrix, element] = in_memory[matrix][place]
            stored[matrix][place] = in_registers[:, matrix, element]
    found = moved(LOAD, data, number, transposed)
    assert np.array_equal(found, loaded.ravel())
    found = moved(STORE, data, number, transposed)
    assert np.array_equal(found, stored.ravel())
