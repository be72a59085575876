"""Counters on record belong to the code that they were read of, whatever its comments say since."""

from __future__ import annotations

from datetime import date

import pytest

from harness.compiling.source import Source, parse
from harness.protocol.profile import Profile, ProfileLine
from lab.explain.records import Recorded, Recording, added, of_source, recorded
from problem.cases import Shape

HEAD = 'extern "C" __global__ void matrix_multiplication_kernel(\n'
TEXT = f"""// One line.
{HEAD}    const float* A, const float* B, float* C, int M, int N, int K) {{
    C[0] = A[0];
    C[1] = B[0];
}}
"""
THEN = parse(TEXT)


def profile(*lines: int) -> Profile:
    return Profile(
        shape=Shape(1, 1, 1),
        **dict.fromkeys(NUMBERS, 0),
        lines=tuple(ProfileLine(line=line, global_sectors=line) for line in lines),
    )


NUMBERS = (
    "ms",
    "fma_active",
    "tensor_active",
    "issue_active",
    "l1_active",
    "warps_eligible",
    "l2_hit_rate",
    "dram_bytes",
    "tma_bytes",
)


def lines_in(record: Recorded, source: Source) -> list[tuple[int, int]] | None:
    found = of_source(record, source)
    return None if found is None else [(x.line, x.global_sectors) for x in found[0].lines]


def test_lines_follow_the_code_past_comments() -> None:
    record = recorded(THEN, [profile(4, 5)], date(2026, 1, 2))
    assert lines_in(record, THEN) == [(4, 4), (5, 5)]
    now = TEXT.replace("One line.", "Two\n// lines.").replace("A[0];", "A[0];\n    // and one here")
    assert lines_in(record, parse(now)) == [(5, 4), (7, 5)]
    assert lines_in(record, parse(TEXT.replace("// One line.\n", ""))) == [(3, 4), (4, 5)]


@pytest.mark.parametrize("change", [("A[0]", "A[1]"), ("C[1] = ", "C[1] =\n")])
def test_another_code_or_other_lines_of_it_are_refused(change: tuple[str, str]) -> None:
    record = recorded(THEN, [profile(4, 5)], date(2026, 1, 2))
    assert lines_in(record, parse(TEXT.replace(*change))) is None


def test_a_newer_record_takes_the_place_of_the_older() -> None:
    old = recorded(THEN, [profile(4)], date(2026, 1, 2))
    new = recorded(THEN, [profile(5)], date(2026, 1, 3))
    both = added(
        Recording(gpu="a", kernels={"x": old, "y": old}), Recording(gpu="a", kernels={"y": new})
    )
    assert both.kernels == {"x": old, "y": new}
    assert added(None, both) == both
    with pytest.raises(ValueError, match="one is of an a, the other of an b"):
        added(both, Recording(gpu="b", kernels={}))
