"""Tests of `explain`: it refuses what `grade` refuses, but explains wrong kernels."""

import json
import re
from pathlib import Path

import pytest

from harness.cli.commands._command import Exit
from harness.cli.main import main

pytestmark = pytest.mark.usefixtures("shared_workers")

SUBMISSIONS = Path(__file__).parent.parent.parent / "submissions"

Captured = pytest.CaptureFixture[str]

ON_CPU = ["--device", "cpu", "--shape", "256x128x256"]
"""A small size, for tests of what holds at every size."""


@pytest.mark.parametrize("file", ["compile-error/syntax", "runtime-error/too_much_shared_memory"])
def test_what_cannot_run_is_refused_in_the_words_of_grade(file: str, capsys: Captured) -> None:
    path = SUBMISSIONS / f"{file}.cu"
    assert main(["explain", "--device", "cpu", str(path)]) == Exit.NO
    explained = " ".join(capsys.readouterr().out.split())
    assert main(["grade", "--quick", "--device", "cpu", str(path)]) == Exit.NO
    graded = " ".join(capsys.readouterr().out.split())
    assert graded[graded.rindex(f"{path.stem} ") :] in explained


def test_a_wrong_kernels_verdict_precedes_its_explanation(capsys: Captured, tmp_path: Path) -> None:
    file = str(SUBMISSIONS / "wrong-answer" / "transposed.cu")
    out = tmp_path / "why.json"
    assert main(["explain", *ON_CPU, "--json", str(out), file]) == Exit.NO
    shown = capsys.readouterr().out
    assert shown.startswith("wrong-answer: ")
    found = json.loads(out.read_text())
    assert found["verdict"] == "wrong-answer" and found["units"] and found["findings"]


@pytest.mark.parametrize("file", ["race/no_barrier_after_loading", "rule-violation/overwrites_A"])
def test_an_unsafe_kernels_verdict_precedes_its_explanation(file: str, capsys: Captured) -> None:
    assert main(["explain", *ON_CPU, str(SUBMISSIONS / f"{file}.cu")]) == Exit.NO
    shown = capsys.readouterr().out
    assert shown.startswith(f"{file.partition('/')[0]}: ")
    assert "Make it right before you make it fast" in shown and "occupancy" in shown


def test_two_kernels_are_compared(capsys: Captured, tmp_path: Path) -> None:
    kernels = Path(__file__).parent / "kernels"
    old, new = (str(kernels / f"{name}.cu") for name in ("double_accumulator", "naive"))
    out = tmp_path / "why.json"
    where = [*ON_CPU, "--gpu", "RTX 4090", "--json", str(out)]
    assert main(["explain", *where, "--against", old, new]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "for an NVIDIA GeForce RTX 4090" in shown
    told = shown.partition("Against double_accumulator")[2]
    assert "naive should be" in told and "× as fast: conversions and special functions" in told
    assert "FP64 units 319.6 → 0.000 ms" in told and "registers" in told and "solved fp64" in told
    against = json.loads(out.read_text())["against"]
    assert against["name"] == "double_accumulator" and "fp64" in against["solved"]
    assert against["before_ms"] > against["after_ms"] and against["why"] in told


def test_the_machine_code_of_a_line_is_shown_on_demand(capsys: Captured) -> None:
    file = Path(__file__).parent / "kernels" / "naive.cu"
    lines = file.read_text(encoding="utf-8").splitlines()
    (product,) = (number for number, text in enumerate(lines, 1) if "sum +=" in text)
    assert main(["explain", *ON_CPU, "--sass", str(product), str(file)]) == 0
    shown = capsys.readouterr().out
    assert columns(shown) == {"again"}, "it reads sectors again, and never diverges"
    code = shown.partition(f"The machine code of line {product}\n")[2].splitlines()
    assert len(code) == 17 and re.fullmatch(r"  and \d+ more", code[-1])
    assert any(each.split()[0] == "LDG.E" for each in code)
    assert main(["explain", *ON_CPU, "--sass", "1000", str(file)]) == 0
    assert capsys.readouterr().out.endswith(
        "The machine code of line 1000\n  none; lines 1 to 8 have some\n"
    )


def columns(shown: str) -> set[str]:
    """Return which of two columns the table of lines has."""
    heading = shown.partition("The lines that cost most\n")[2].splitlines()[0]
    return {"again", "lanes"} & {*heading.split()}
