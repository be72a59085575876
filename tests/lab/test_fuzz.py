"""The automatic adversary changes kernels as it says, and its oracle sees what that breaks."""

import random
from pathlib import Path

import pytest

from harness.judge.workers.session import Session
from lab.fuzz import GUARDS, Tried, by_kind, changes, mutant, oracle

SOURCE = (
    Path(__file__).resolve().parent.parent.parent / "solutions" / "02_shared_tile.cu"
).read_text(encoding="utf-8")
NAMED = {guard.name: guard for guard in GUARDS}


def test_each_kind_of_change_is_found_in_a_tiled_kernel() -> None:
    found = changes(SOURCE)
    assert {change.name for change in found} == {
        "barrier dropped",
        "bound loosened",
        "last step dropped",
        "sum loses bits",
        "term dropped",
        "type narrowed",
    }
    lines = SOURCE.splitlines()
    assert all("__syncthreads" in lines[c.line - 1] for c in found if c.name == "barrier dropped")


@pytest.mark.parametrize(
    ("change", "guard", "seen"),
    [
        ("barrier dropped", "always", "wrong-answer"),
        ("term dropped", "many rows", "wrong-answer"),
        ("type narrowed", "many rows", "wrong-answer"),
        ("term dropped", "after five launches", ""),  # variables are reset before each launch
    ],
)
def test_the_oracle_sees_what_a_change_breaks(
    change: str, guard: str, seen: str, cpu_session: Session
) -> None:
    chosen = next(each for each in changes(SOURCE) if each.name == change)
    made = mutant(SOURCE, chosen, NAMED[guard])
    found = oracle(cpu_session, made.source, made.guard, random.Random(1))
    assert found is not None and bool(found) is bool(seen) and seen in found


def test_misses_are_counted_by_change_and_guard() -> None:
    def tried(guard: str, wrong: str, verdict: str) -> Tried:
        return Tried(
            kernel="a", change="term dropped", line=1, guard=guard, wrong=wrong, verdict=verdict
        )

    found = by_kind(
        [
            tried("one K", "wrong", "accepted"),
            tried("one K", "wrong", "wrong-answer"),
            tried("always", "", ""),
        ]
    )
    assert [(kind, each.wrong, each.missed) for kind, each in found.items()] == [
        (("term dropped", "one K"), 2, 1)
    ]
