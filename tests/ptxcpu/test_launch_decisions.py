"""Comparisons that depend only on the sizes of a launch are found, with their results."""

import pytest

from harness.ptxcpu.analysis.inline import inline
from harness.ptxcpu.analysis.ranges import LaunchDecisions
from harness.ptxcpu.arguments import ParameterKind
from harness.ptxcpu.ptx.parser import parse
from tests.ptxcpu.programs import entry, kernel_of
from tests.ptxcpu.runner import KERNELS
from tests.sources import named_parts

LARGE, SMALL = 8192, 256

DECIDED = named_parts(KERNELS / "launch_decisions.ptx.in")
RESULTS = {"True": True, "False": False}
KINDS = (ParameterKind.READ_ONLY, ParameterKind.NUMBER)


@pytest.mark.parametrize("name", DECIDED)
def test_comparisons_that_a_launch_determines(name: str) -> None:
    decided, body = DECIDED[name].removeprefix("// ").split("\n", 1)
    both = [[RESULTS[x] for x in each.split() if x in RESULTS] for each in decided.split(",")]
    text = entry(
        "u64 A, u32 n",
        f"""
ld.param.u64 %rd1, [A]; cvta.to.global.u64 %rd1, %rd1; ld.param.u32 %r1, [n];
{body} @%p1 bra END;
END: ret;""",
    )
    kernel = inline(parse(text), "litmus", 0, kinds=KINDS)
    for size, expected in zip((LARGE, SMALL), both, strict=True):
        found = LaunchDecisions(kernel, (16, 16, 1)).of((size // 16, 1, 1), (size,))
        assert list(found.values()) == expected


def test_launches_of_one_grid_may_differ() -> None:
    body = "ld.param.u32 %r1, [n]; setp.lt.u32 %p1, %r1, 1000; @%p1 bra END; END: ret;"
    kernel = kernel_of(entry("u64 A, u32 n", body), KINDS)
    large, small = (((1, 1, 1), (size,)) for size in (LARGE, SMALL))
    assert kernel.first_difference(large, large) is None
    assert kernel.first_difference(large, small) is not None
