"""Decisions that hang on the machine are found; those of correct kernels are not."""

import pytest

from harness.ptxcpu.analysis.taint import Dependence, machine_dependent
from harness.ptxcpu.ptx.parser import parse
from tests.ptxcpu.programs import entry
from tests.ptxcpu.runner import KERNELS
from tests.sources import named_parts

DEPENDS = named_parts(KERNELS / "machine_dependent.ptx.in")
ORDINARY = named_parts(KERNELS / "machine_independent.ptx.in")


def dependences(body: str) -> dict[str, Dependence]:
    text = entry(
        "u64 A, u64 B, u32 n",
        f"""ld.param.u64 %rd1, [A]; cvta.to.global.u64 %rd1, %rd1; ld.param.u64 %rd8, [B];
{body}
END:""",
        ".shared .align 4 .b8 s[16];",
    )
    return {each.source: each for each in machine_dependent(parse(text), "litmus")}


@pytest.mark.parametrize("name", DEPENDS)
def test_a_branch_that_depends_on_the_machine_is_found(name: str) -> None:
    source, body = DEPENDS[name].removeprefix("// depends on ").split("\n", 1)
    assert source in dependences(body)


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_branch_is_not_reported(name: str) -> None:
    assert not dependences(f"{ORDINARY[name]} @%p1 bra END;")


def test_a_dependence_names_the_line_that_reads_the_source() -> None:
    body = """.loc 1 3 0
mov.u64 %rd2, %gridid;
.loc 1 4 0
setp.gt.u64 %p1, %rd2, 5; @%p1 bra END;
.loc 1 5 0
setp.gt.u64 %p1, %rd2, 6; @%p1 ret;"""
    assert dependences(body) == {"%gridid": Dependence("%gridid", line=3, branches=2)}
