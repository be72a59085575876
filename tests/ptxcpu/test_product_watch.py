"""Sums of wgmma are read only when their group was waited for, however they are copied before."""

import itertools

import numpy as np
import pytest

from harness.ptxcpu.arguments import Buffer, ParameterKind
from tests.ptxcpu.programs import entry, kernel_of

GROUPS = 3
READS = {
    "by arithmetic": "add.f32 %f40, SUM, SUM;",
    "by a store": "st.global.f32 [%rd1], SUM;",
    "by a copy that is used": "mov.f32 %f41, SUM; mov.b32 %r1, %f41; add.u32 %r2, %r1, %r1;",
    "by a copy alone": "mov.f32 %f41, SUM; mov.f32 %f42, %f41;",
    "after it was written": "mov.f32 SUM, 0f00000000; add.f32 %f40, SUM, SUM;",
    "by another product": """wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32
        {%f0, %f1, %f2, %f3}, %rd2, %rd2, 1, 1, 1;""",
    "as a factor": """wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32
        {%f20, %f21, %f22, %f23}, {SUM, SUM, SUM, SUM}, %rd2, 1, 1, 1;""",
}
HARMLESS = {"by a copy alone", "after it was written", "by another product"}


CASES = [
    *itertools.product(["by arithmetic"], range(GROUPS), [0, 1, 2, None]),
    *itertools.product(READS, [1], [1, 2]),
]
"""A read, the group of the sum, and the groups that may be pending."""


@pytest.mark.parametrize(("how", "group", "pending"), CASES)
def test_a_sum_is_read_after_the_wait_for_its_group(
    how: str, group: int, pending: int | None
) -> None:
    products = "".join(
        f"""wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32
            {{%f{4 * i}, %f{4 * i + 1}, %f{4 * i + 2}, %f{4 * i + 3}}}, %rd2, %rd2, 0, 1, 1;
            wgmma.commit_group.sync.aligned;"""
        for i in range(GROUPS)
    )
    wait = "" if pending is None else f"wgmma.wait_group.sync.aligned {pending};"
    text = entry(
        "u64 out",
        f"""
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
st.shared.v4.u32 [%r3], {{0, 0, 0, 0}};
fence.proxy.async; bar.sync 0;
mov.u64 %rd2, tile; shr.u64 %rd2, %rd2, 4; or.b64 %rd2, %rd2, {128 >> 4 << 16 | 256 >> 4 << 32};
wgmma.fence.sync.aligned;
{products}
{wait}
{READS[how].replace("SUM", f"%f{4 * group}")}
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;""",
        ".shared .align 128 .b8 tile[2048];",
    )
    kernel = kernel_of(text, (ParameterKind.WRITABLE,), 128, watched=True)
    out = Buffer(np.zeros(1, np.float32), writable=True, name="out")
    result = kernel.check((1, 1, 1), [out])
    assert result.fault is None, result.fault
    messages = [each.message for each in result.findings if "wgmma.wait_group" in each.message]
    is_complete = pending is not None and group < GROUPS - pending
    assert bool(messages) is not (is_complete or how in HARMLESS)
