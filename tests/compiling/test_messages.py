"""Messages of the compiler: advice about names, and launches that are refused."""

from pathlib import Path

import pytest

from harness.compiling.compiler import compile_source
from harness.protocol.compiler import Compile
from harness.protocol.report import RuntimeFault
from tests.compiled import compiled, refused
from tests.sources import NAME, PARAMETERS

HEAD = f"__global__ void {NAME}({PARAMETERS}) {{"


def test_only_the_first_unknown_name_has_advice() -> None:
    headers = '#include "tensor.h"\n#include "t.h"\n'
    source = f"{headers}{HEAD}\n    Tensor a(A), b(B);\n    Tensor c(a);\n}}\n"
    said = [
        '"tensor.h" (line 1) declares it' in each.message for each in refused(source).diagnostics
    ]
    assert said[0] and not any(said[1:]) and len(said) > 1


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("__block_size__((32, 8, 1))", "requires blocks of (32, 8, 1) threads"),
        ("__block_size__((16, 16, 1), (2, 1, 1))", "size clusters by __cluster_dims__ alone"),
        ("__cluster_dims__()", "size clusters by __cluster_dims__ alone"),
    ],
)
def test_a_launch_that_the_judge_does_not_make_is_refused(attribute: str, said: str) -> None:
    source = f"{HEAD} C[0] = 1; }}".replace("void", f"void {attribute}")
    answer = compile_source(Compile(source=source))
    assert isinstance(answer, RuntimeFault) and said in answer.message


def test_letters_of_the_folder_do_not_reach_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "Prüfung"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TMPDIR", str(folder))
    assert str(tmp_path) not in compiled(f"{HEAD} C[0] = 1; }}").ptx
