"""Tests of reading reports that `ncu` wrote on an H100, of three kernels at 256x256x256."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.views.explanation import screen as view
from harness.compiling.disassembly import Function, disassemble
from harness.compiling.waits import Instruction
from harness.devices.cuda.hardware_counters import producer, read
from harness.judge.explain.examination import Examination
from harness.judge.explain.explain import explain
from harness.judge.explain.explanation import Explanation
from harness.protocol.device import Profile, ProfileLine
from harness.protocol.report import Counters, LineCounters
from problem.cases import Shape
from tests.judge.explain.ladder import device_with
from tests.ptxcpu.runner import compiled, disassembled
from tests.requests import count_on

NCU = Path(__file__).parent / "ncu"
ENTRY = "matrix_multiplication_kernel"
SHAPE = Shape(256, 256, 256)
LONG = [pytest.mark.architectures]
NAMES = (
    pytest.param("01_naive", marks=LONG),
    pytest.param("02_shared_tile"),
    pytest.param("09_vector_loads", marks=LONG),
)
"""Counting all accesses of one takes some seconds."""


@functools.cache
def profile(name: str) -> Profile:
    functions = disassemble((NCU / f"{name}.cubin").read_bytes(), "kernel.cu")
    return read(NCU / f"{name}.ncu-rep", functions, ENTRY, SHAPE)


def source(name: str) -> str:
    return (NCU / f"{name}.cu").read_text(encoding="utf-8")


@functools.cache
def counted(name: str) -> Counters:
    kernel = compiled(source(name))
    code = disassembled(source(name)).lines
    found = device_with(kernel).count(count_on(SHAPE, max_blocks=1 << 20, code=code))
    assert isinstance(found, Counters)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_cpu_device_counts_what_the_hardware_counts(name: str) -> None:
    assert _quantities(profile(name).lines) == _quantities(counted(name).lines)


def _quantities(
    lines: Iterable[ProfileLine | LineCounters],
) -> dict[int, tuple[int, int, int, int]]:
    """Return the quantities that both devices count, for each line that has any.

    The ideal number of sectors is left out: if lanes read the same word, `ncu` counts as many as
    if each lane read another word.
    """
    found = {
        line.line: (
            line.global_sectors,
            line.global_passes,
            line.shared_wavefronts,
            line.shared_min_wavefronts,
        )
        for line in lines
    }
    return {line: each for line, each in found.items() if any(each)}


def test_a_profile_has_the_figures_of_the_whole_launch() -> None:
    found = profile("02_shared_tile")
    assert found.ms == pytest.approx(0.0129, rel=0.1)
    assert sum(line.warp_instructions for line in found.lines) == 2_191_360
    assert 0.2 < found.l1_active < 1 and 0 < found.fma_active < found.issue_active < 1
    assert found.tensor_active < 0.01 and found.tma_bytes == 0


def explained(name: str, by_hardware: bool) -> Explanation:
    return explain(
        Examination(
            name,
            source(name),
            None,
            disassembled(source(name)),
            counted(name),
            profile=profile(name) if by_hardware else None,
        )
    )


@pytest.mark.parametrize("name", NAMES)
def test_both_devices_come_to_the_same_first_finding(name: str) -> None:
    here, there = (explained(name, by_hardware).findings[0] for by_hardware in (False, True))
    assert (here.rule, here.line) == (there.rule, there.line)


def test_the_screen_says_what_the_gpu_counted() -> None:
    """Without the GPU's counters, the screen shows none of these figures."""
    screen = shown(explained("02_shared_tile", True))
    assert "ms at 256×256×256" in screen and "of L2 hits" in screen
    assert "by the GPU's counters" in screen and "bulk copies" not in screen
    assert explained("02_shared_tile", False).hardware is None
    assert "L2 hits" not in shown(explained("02_shared_tile", False))


def shown(explanation: Explanation) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(view(explanation, source("02_shared_tile")))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_stall_shares_of_lines_come_from_samples() -> None:
    lines = explained("02_shared_tile", True).lines
    assert sum(line.stall_share or 0 for line in lines) == pytest.approx(1)
    first, second = sorted(lines, key=lambda line: -(line.stall_share or 0))[:2]
    code = source("02_shared_tile").splitlines()
    assert "A[(size_t)row * N" in code[first.line - 1], "the load that the tile waits for first"
    assert "sum +=" in code[second.line - 1]


def test_waits_are_attributed_to_the_load() -> None:
    code = (
        Instruction("LDG.E.128", "R8,desc[UR6][R2.64]", None, 10),
        Instruction("IADD3", "R4,R4,0x10,RZ", None, 11),
        Instruction("FFMA", "R5,R10,R6,R5", None, 12),
        Instruction("STS", "[R7],R8", None, 13),
    )
    assert producer(code, 2, ("LDG",)) == 0  # R10 is the third word that was loaded
    assert producer(code, 3, ("LDG",)) == 0
    assert producer(code, 2, ("LDS",)) == 2  # no instruction loads from shared memory
    assert producer(code, 2, ()) == 2


def test_a_missing_report_is_an_error(tmp_path: Path) -> None:
    with pytest.raises((ValueError, FileNotFoundError, RuntimeError)):
        read(tmp_path / "nothing.ncu-rep", (Function(ENTRY, ()),), ENTRY, SHAPE)
