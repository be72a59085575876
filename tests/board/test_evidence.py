"""Which runs count where two reports carry the same second, and where others know better."""

from __future__ import annotations

from typing import Any

import pytest

from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.evidence import Run, weigh
from harness.protocol.report import Verdict
from tests.board.factory import H100, entry

NOW = Edition.current()
RUN = entry()
REJECTED = RUN._replace(verdict=Verdict.WRONG_ANSWER.value, score=None)


def weighed(*entries: Entry) -> list[Run]:
    return weigh(entries, H100, NOW)


def at(made: Entry, minute: int, **changes: Any) -> Entry:
    return made._replace(created=f"2026-01-01T12:{minute:02d}:00.000000+00:00", **changes)


@pytest.mark.parametrize(("minute", "counts"), [(4, False), (5, False), (6, True)])
def test_an_own_run_counts_if_it_is_later_than_the_last_own_rejection(
    minute: int, counts: bool
) -> None:
    own = at(RUN, minute, own=True)
    found = weighed(at(REJECTED, 1, own=True), own, at(REJECTED, 5, own=True))
    assert found == ([Run(own, disputed=False)] if counts else [])


@pytest.mark.parametrize("same", ["code", "source"])
def test_a_rejection_holds_for_the_code_of_its_author_and_for_its_source(same: str) -> None:
    rejected = at(REJECTED, 9, own=True)
    other = {"sha256": "0" * 64} if same == "code" else {"code": "0" * 64, "author": "bob"}
    assert weighed(rejected, at(RUN, 5, own=True, **other)) == []
    neither = {"sha256": "0" * 64, "author": "bob"}
    assert len(weighed(rejected, at(RUN, 5, own=True, **neither))) == 1


@pytest.mark.parametrize("judged", [RUN, REJECTED])
def test_nobody_claims_what_the_own_judge_has_judged(judged: Entry) -> None:
    claim = at(RUN, 30)
    found = weighed(at(judged, 1, own=True), claim)
    assert claim not in [run.entry for run in found]


@pytest.mark.parametrize(("minute", "disputed"), [(4, True), (5, True), (6, False)])
def test_a_claim_is_disputed_by_a_claimed_rejection_since(minute: int, disputed: bool) -> None:
    claim = at(RUN, minute)
    assert weighed(claim, at(REJECTED, 5), at(REJECTED, 1)) == [Run(claim, disputed)]
    assert weighed(claim, at(REJECTED, 5, author="bob")) == [Run(claim, False)]
    own = at(RUN, minute, own=True)
    assert weighed(own, at(REJECTED, 5)) == [Run(own, False)]


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"verdict": "judge-error"}, True),
        ({"verdict": "unsupported"}, True),
        ({"judge": "0.0.1"}, True),
        ({"cases": NOW.cases + 1}, True),
        ({"device": "NVIDIA L4"}, True),
        ({"verdict": "time-limit"}, False),
        ({"verdict": "time-limit", "device": "CPU", "on_gpu": False}, True),
        ({"verdict": "race", "device": "CPU", "on_gpu": False}, False),
        ({"verdict": "memory-error", "device": "CPU", "on_gpu": False}, False),
        ({"verdict": "race", "device": "NVIDIA L4"}, True),
        ({"quick": True}, False),
    ],
)
def test_which_rejections_concern_a_board(changes: dict[str, Any], counts: bool) -> None:
    own = at(RUN, 5, own=True)
    assert bool(weighed(own, at(REJECTED, 9, own=True, **changes))) is counts


def test_an_acceptance_in_a_quick_grading_or_elsewhere_judges_nothing() -> None:
    claim = at(RUN, 30)
    for changes in ({"quick": True}, {"device": "NVIDIA L4"}):
        assert Run(claim, False) in weighed(at(RUN, 1, own=True, **changes), claim)  # type: ignore[arg-type]


def test_only_what_was_accepted_on_this_gpu_is_a_run() -> None:
    assert weighed(RUN._replace(device="NVIDIA L4"), REJECTED._replace(device="CPU")) == []
