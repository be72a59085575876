"""C++ that nvcc accepts in kernel files compiles here, too."""

from pathlib import Path

import pytest

from harness.compiling import headers
from harness.compiling.headers import Include
from tests.compiled import compiled
from tests.sources import KERNEL, NAME, PARAMETERS, named_parts

LAUNCH = "<<<dim3((K + 15) / 16, (M + 15) / 16), dim3(16, 16)>>>(A, B, C, M, N, K)"


def whole(part: str) -> str:
    """Return a part of accepted.cu.in as a kernel file."""
    text = part.replace("PARAMETERS", PARAMETERS).replace("LAUNCH", LAUNCH)
    return text if NAME in text else text + KERNEL


ACCEPTED = {
    **{
        name: whole(part)
        for name, part in named_parts(Path(__file__).with_name("accepted.cu.in")).items()
    },
    "byte order mark": "\ufeff#include <cstdint>\n" + KERNEL,
    "carriage returns": f"#define TWO \\\n  2\n/* a\n b */\n{KERNEL}".replace("\n", "\r\n"),
    "end of file of DOS": KERNEL + "\x1a",
    "constant of the grid": KERNEL.replace("int K)", "const __grid_constant__ int K)"),
    "type that is deduced": f"template <class X> {KERNEL}".replace("const float*", "const X*"),
    "pointers that are not const": f"template <class X> {KERNEL}".replace("const float*", "X*"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_code_that_nvcc_accepts_compiles(name: str) -> None:
    assert compiled(ACCEPTED[name])


def test_host_libraries_are_not_read_from_the_toolkit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A whole CUDA toolkit has cuBLAS next to the device headers, and NVRTC cannot read it."""
    (tmp_path / "cublas_v2.h").write_text("#include <stdint.h>\n")
    (tmp_path / "cuda_fp16.h").touch()
    monkeypatch.setattr(headers, "include_directories", lambda: (tmp_path,))
    (tmp_path / "curand.h").touch()
    includes = [Include("cublas_v2.h", 1), Include("cuda_fp16.h", 2), Include("curand.h", 3)]
    virtual, empty = headers.stand_ins(includes, "")
    assert {"cublas_v2.h", "curand.h"} < virtual.keys() and "cuda_fp16.h" not in virtual
    assert not empty
