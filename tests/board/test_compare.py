"""Two reports side by side: what differs, by how much, and whether it is more than noise."""

from typing import Any

import pytest

from harness.board.compare import Comparison, Fact, compare
from harness.board.document import Document
from harness.board.entry import Version
from harness.protocol.report import Report
from tests.board.factory import report, uncompilable

NOW = Version.current()


def compared(a: Report, b: Report) -> Comparison:
    return compare(Document.of(a), Document.of(b))


def facts(made: Comparison) -> dict[str, tuple[Any, Any]]:
    return {fact.what: (fact.a, fact.b) for fact in made.facts}


@pytest.mark.parametrize(
    ("a", "b", "change"),
    [
        (2.0, 3.0, "+50.0 %"),
        (2, 1.5, "−25.0 %"),
        (1.5, 1.5, "="),
        (0, 0, "="),
        (0, 3, ""),
        (None, 1, ""),
        (1, None, ""),
        ("x", "x", ""),
        ("x", 1, ""),
    ],
)
def test_a_change_needs_two_numbers(a: Any, b: Any, change: str) -> None:
    assert Fact("what", "ms", a, b).change == change


NEVER_RUN = uncompilable().model_copy(
    update={"kernel": None, "verification": None, "counters": None, "sanitizing": ()}
)


@pytest.mark.parametrize("swapped", [False, True])
def test_what_one_report_lacks_is_absent(swapped: bool) -> None:
    whole, part = report(), NEVER_RUN
    made = compared(part, whole) if swapped else compared(whole, part)
    assert [fact.what for fact in made.facts] == [
        fact.what for fact in compared(whole, whole).facts
    ]
    found = facts(made)
    for what, there in (("registers", 128), ("worst error", 2.2e-6), ("intensity", 0.44)):
        assert found[what] == ((None, there) if swapped else (there, None))
    assert found["badges"] == (
        (None, "cuda-cores default-launch") if swapped else ("cuda-cores default-launch", None)
    )


def test_the_difference_of_the_sources_is_shown() -> None:
    one, other = (report("tile", source="one\ntwo\n"), report("wide", source="one\nthree\n"))
    assert compared(one, one).diff == ""
    assert compared(one, other).diff == (
        "--- A tile\n+++ B wide\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    )


def test_intervals_say_whether_a_difference_is_noise() -> None:
    made = compared(report(score=0.9), report(score=0.95))
    assert made.conclusion == (
        "B against A: +5.6 %. The 95 % intervals do not overlap: the difference is larger than "
        "the noise of the runs."
    )
    assert facts(made)["score"] == (0.9, 0.95)
    made = compared(report(score=0.9), report(score=0.901))
    assert "intervals overlap: it is not larger" in made.conclusion
    made = compared(report(score=0.9), report(score=0.95, uuid="GPU-1"))
    assert made.conclusion.endswith("They ran on two GPUs of the model, which may differ too.")


@pytest.mark.parametrize(
    ("source", "too_long"),
    [("x\n" * 2000, False), ("x\n" * 2001, True), ("x" * 200_000, False), ("x" * 200_001, True)],
)
def test_long_sources_are_not_compared_line_by_line(source: str, too_long: bool) -> None:
    long = report(source=source)
    for made in (compared(report(), long), compared(long, report())):
        assert made.too_long is too_long and bool(made.diff) is not too_long
    assert not compared(long, long).too_long


UNSCORED, SCORED = report(score=None), report()
OTHER_GPU = report(gpu="NVIDIA L4")
EARLIER = report(version=Version("0.0.1", NOW.cases))
LATER_CASES = report(version=Version(NOW.judge, NOW.cases + 1))


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (UNSCORED, SCORED, "A has no score: nothing to compare in speed."),
        (SCORED, UNSCORED, "B has no score: nothing to compare in speed."),
        (UNSCORED, UNSCORED, "A and B have no score: nothing to compare in speed."),
        (SCORED, OTHER_GPU, "A ran on NVIDIA H100 80GB HBM3 and B on NVIDIA L4: scores of two"),
        (EARLIER, SCORED, f"A is of judge 0.0.1, cases {NOW.cases}, and B of judge {NOW.judge}"),
        (SCORED, LATER_CASES, f"cases {NOW.cases + 1}: regrade before comparing."),
    ],
)
def test_what_cannot_be_compared_says_why(a: Report, b: Report, said: str) -> None:
    assert said in compared(a, b).conclusion
