"""Litmus tests of fence.proxy.async: a model of two lines gives the expected verdict on each.

One thread writes shared memory, which a bulk copy of another thread reads. Flags order the two by
way of a third thread. Every combination of a write, a fence and its place has 16 bytes of its own.
"""

import itertools
import re
from dataclasses import dataclass

import numpy as np
import pytest

from harness.ptxcpu.arguments import Buffer, ParameterKind
from harness.ptxcpu.results import Hazard
from tests.ptxcpu.programs import entry, kernel_of

WRITES = {
    "weak": "st.shared.v4.u32 [AT], {%r1, %r1, %r1, %r1};",
    "strong": "st.relaxed.cta.shared.u32 [AT], 1;",
    "copied": "cp.async.ca.shared.global [AT], [%rd1+128], 16; cp.async.wait_all;",
}
FENCES = {
    "fence.proxy.async;": True,
    "fence.proxy.async.shared::cta;": True,
    "fence.proxy.async.shared::cluster;": True,
    "fence.proxy.async.global;": False,
    "fence.proxy.alias;": False,
    "fence.acq_rel.gpu;": False,
}
"""Fences, and whether the asynchronous proxy can read what was written to shared memory before."""

PLACES = {
    "before the write": False,
    "behind the write": True,
    "behind its flag": False,
    "between the flags": True,
    "before the last flag": False,
    "before the copy": True,
}
"""Places, and whether they are on the path from the write to the copy."""


@dataclass(frozen=True)
class Proxied:
    write: str
    fence: str
    place: str

    def races(self) -> bool:
        """Return whether the copy may not see the write. Copies that have arrived need no fence."""
        return self.write != "copied" and not (FENCES[self.fence] and PLACES[self.place])

    def texts(self, i: int) -> tuple[str, str, str]:
        """Return what each thread does."""

        def at(place: str) -> str:
            return self.fence if self.place == place else ""

        def put(flag: int) -> str:
            return f"st.release.cta.shared.u32 [flags+{8 * i + 4 * flag}], 1;"

        def get(flag: int) -> str:
            label = f"W{i}_{flag}"
            return f"""{label}: ld.acquire.cta.shared.u32 %r2, [flags+{8 * i + 4 * flag}];
                setp.eq.u32 %p1, %r2, 0; @%p1 bra {label};"""

        word = f"data+{16 * i}"
        return (
            f"{at('before the write')} {WRITES[self.write].replace('AT', word)} "
            f"{at('behind the write')} {put(0)} {at('behind its flag')}",
            f"{get(0)} {at('between the flags')} {put(1)}",
            f"{at('before the last flag')} {get(1)} {at('before the copy')} "
            f"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [{word}], 16;",
        )


TESTS = list(itertools.starmap(Proxied, itertools.product(WRITES, FENCES, PLACES)))
THREADS = 64


def launch(body: str, outside: str) -> list[str]:
    """Return the messages of a launch of one block, whose buffer is in %rd1 and thread in %r1."""
    text = entry(
        "u64 out",
        f"""
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.eq.u32 %p2, %r1, 0;
{body}""",
        outside,
    )
    kernel = kernel_of(text, (ParameterKind.WRITABLE,), THREADS, watched=True)
    out = Buffer(np.zeros(64, np.uint32), writable=True, name="out")
    result = kernel.check((1, 1, 1), [out])
    assert result.fault is None, result.fault
    assert {each.hazard for each in result.findings} <= {Hazard.RACE}
    return [each.message for each in result.findings]


def test_a_proxy_fence_counts_on_the_path_alone() -> None:
    clear = "".join(
        f"st.shared.u32 [data+{at}], 0;" for at in range(0, 16 * len(TESTS), 4)
    ) + "".join(f"st.shared.u32 [flags+{at}], 0;" for at in range(0, 8 * len(TESTS), 4))
    parts = [[each.texts(i)[thread] for i, each in enumerate(TESTS)] for thread in range(3)]
    bodies = "".join(f"T{n}: {' '.join(lines)} bra DONE;" for n, lines in enumerate(parts))
    body = f"""@!%p2 bra READY; {clear} fence.proxy.async;
        READY: bar.sync 0;
        @%p2 bra T0; setp.eq.u32 %p1, %r1, 40; @%p1 bra T1; setp.eq.u32 %p1, %r1, 50; @%p1 bra T2;
        bra DONE;
        {bodies}
        DONE: cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
    outside = f""".shared .align 16 .b8 data[{16 * len(TESTS)}];
        .shared .align 8 .b8 flags[{8 * len(TESTS)}];"""
    messages = launch(body, outside)
    assert all("fence.proxy.async" in each for each in messages)
    offsets = [re.search(r"at byte (\d+) of data", each) for each in messages]
    found = {TESTS[int(match[1]) // 16] for match in offsets if match}
    assert found == {each for each in TESTS if each.races()}


ORDERED_BY = {
    "a barrier": "bar.sync 0;",
    "an mbarrier": """mbarrier.arrive.shared.b64 %rd2, [b];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [b], 0; @!%p1 bra WAIT;""",
}


@pytest.mark.parametrize("order", ORDERED_BY)
@pytest.mark.parametrize(
    ("behind_the_write", "before_the_copy", "is_found"),
    [("", "", True), ("fence.proxy.async;", "", False), ("", "fence.proxy.async;", False)],
    ids=["none", "where it is written", "where it is read"],
)
def test_barriers_and_proxy_fences_order_bulk_copies(
    order: str, behind_the_write: str, before_the_copy: str, is_found: bool
) -> None:
    body = f"""mov.u32 %r3, s; mad.lo.u32 %r3, %r1, 4, %r3;
        @%p2 mbarrier.init.shared.b64 [b], {THREADS}; bar.sync 0;
        st.shared.u32 [%r3], %r1; {behind_the_write}
        {ORDERED_BY[order]}
        @!%p2 bra DONE; {before_the_copy}
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 256;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        DONE:"""
    outside = ".shared .align 16 .b8 s[256]; .shared .align 8 .b8 b[8];"
    messages = launch(body, outside)
    assert bool(messages) is is_found
    assert all("fence.proxy.async" in each for each in messages)


def test_a_bulk_copy_needs_no_fence_behind_another() -> None:
    body = """@!%p2 bra DONE;
        mbarrier.init.shared.b64 [b], 1;
        mbarrier.arrive.expect_tx.shared.b64 %rd2, [b], 64;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 64, [b];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [b], 0; @!%p1 bra WAIT;
        cp.async.bulk.global.shared::cta.bulk_group [%rd1+64], [s], 64;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        DONE:"""
    outside = ".shared .align 16 .b8 s[64]; .shared .align 8 .b8 b[8];"
    assert launch(body, outside) == []


@pytest.mark.parametrize("fencing", [(), (0,), (40,), (0, 40)])
def test_each_writer_of_a_part_needs_a_proxy_fence(fencing: tuple[int, ...]) -> None:
    """A read of the whole joins what is known of its parts."""
    halves = "".join(
        f"""setp.ne.u32 %p1, %r1, {thread}; @%p1 bra W{thread};
        st.shared.v2.u32 [s+{8 * half}], {{%r1, %r1}};
        {"fence.proxy.async;" if thread in fencing else ""} W{thread}:"""
        for half, thread in enumerate((0, 40))
    )
    body = f"""{halves} bar.sync 0; @!%p2 bra DONE;
        ld.shared.v4.u32 {{%r2, %r3, %r4, %r5}}, [s];
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 16;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; DONE:"""
    messages = launch(body, ".shared .align 16 .b8 s[16];")
    assert bool(messages) == (len(fencing) < 2)
    assert all("fence.proxy.async" in each for each in messages)
