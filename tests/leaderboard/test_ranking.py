"""Ranks respect the noise, and nothing is ranked that cannot be compared."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.leaderboard.document import Document
from harness.leaderboard.entry import Entry
from harness.leaderboard.ranking import (
    Board,
    Edition,
    Filter,
    Standing,
    distinguishable,
    rank,
    shared_ranks,
    standing,
)
from harness.report import Badge
from tests.leaderboard.factory import H100, entry, rejected, report

NOW = Edition.current()
BEFORE = Edition("0.0.1", NOW.cases)
INTERVALS = st.lists(st.tuples(st.floats(0.01, 2), st.floats(0, 0.2)), max_size=40).map(
    lambda pairs: [(score - width, score + width) for score, width in sorted(pairs, reverse=True)]
)


def board(entries: list[Entry], **filters: object) -> Board:
    (only,) = rank(entries, NOW, Filter(**filters))  # type: ignore[arg-type]
    return only


def places(made: Board) -> list[tuple[int | None, str]]:
    return [(row.rank, row.entry.name) for row in made.rows]


def test_the_best_run_of_each_author_and_name_counts() -> None:
    made = board(
        [
            entry("tile", "ada", 0.8, day=0),
            entry("tile", "ada", 0.9, day=1),
            entry("tile", "ada", 0.7, day=2),
            entry("tile", "bob", 0.85),
            entry("wide", "ada", 0.95),
        ]
    )
    assert places(made) == [(1, "wide"), (2, "tile"), (3, "tile")]
    assert [row.entry.score for row in made.rows] == [0.95, 0.9, 0.85]
    assert [row.runs for row in made.rows] == [1, 3, 1]


def test_overlapping_intervals_share_a_rank() -> None:
    made = board([entry("a", score=1.0), entry("b", score=0.997), entry("c", score=0.9)])
    assert places(made) == [(1, "a"), (1, "b"), (3, "c")]


def test_a_chain_of_overlaps_does_not_end_at_the_top() -> None:
    steps = [entry(f"{i}", score=1 - 0.003 * i) for i in range(5)]
    assert [row.rank for row in board(steps).rows] == [1, 1, 3, 3, 5]


def test_intervals_that_touch_overlap() -> None:
    assert shared_ranks([(0.9, 1.0), (0.8, 0.9), (0.7, 0.85)]) == [1, 1, 3]
    assert shared_ranks([]) == []


@given(INTERVALS)
def test_a_rank_is_shared_exactly_with_who_overlaps_its_leader(
    intervals: list[tuple[float, float]],
) -> None:
    ranks = shared_ranks(intervals)
    assert ranks == sorted(ranks)
    for place, ((_, high), mine) in enumerate(zip(intervals, ranks, strict=True), start=1):
        leader_low, _ = intervals[mine - 1]
        assert ranks[mine - 1] == mine <= place
        assert high >= leader_low
        if mine == place > 1:
            previous_low, _ = intervals[ranks[place - 2] - 1]
            assert high < previous_low


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (entry(), Standing.RANKED),
        (entry(score=None), Standing.UNSCORED),
        (entry(quick=True), Standing.QUICK),
        (entry(edition=BEFORE), Standing.REGRADE),
        (entry(edition=Edition(NOW.judge, NOW.cases + 1)), Standing.REGRADE),
        (Entry.of(rejected(), "x"), Standing.NOT_ACCEPTED),
    ],
)
def test_only_what_can_be_compared_is_ranked(made: Entry, expected: Standing) -> None:
    assert standing(made, NOW) is expected
    ranked = [row for made_board in rank([made], NOW) for row in made_board.rows]
    assert len(ranked) == (expected is Standing.RANKED)


def test_another_edition_says_regrade_until_there_is_a_run_of_this_one() -> None:
    old = entry("tile", "ada", 1.2, edition=BEFORE)
    made = board([old, entry("wide", "ada", 0.9)])
    assert [row.entry for row in made.unranked] == [old]
    assert (made.unranked[0].rank, made.unranked[0].standing) == (None, Standing.REGRADE)
    made = board([old, entry("wide", "ada", 0.9), entry("tile", "ada", 1.0, day=1)])
    assert made.unranked == ()
    assert places(made) == [(1, "tile"), (2, "wide")]


def test_each_gpu_model_has_its_own_board() -> None:
    boards = rank([entry("a", gpu="NVIDIA L4"), entry("a", score=0.5), entry("b", score=0.6)], NOW)
    assert [(made.gpu, len(made.rows)) for made in boards] == [(H100, 2), ("NVIDIA L4", 1)]
    assert places(boards[1]) == [(1, "a")]


def test_the_same_source_by_two_authors_is_marked() -> None:
    made = board(
        [
            entry("mine", "ada", 0.9, source="x"),
            entry("also mine", "ada", 0.8, source="x"),
            entry("copy", "bob", 0.7, source="x // and a comment"),
            entry("own", "eve", 0.6, source="y"),
        ]
    )
    assert [(row.entry.name, row.twins) for row in made.rows] == [
        ("mine", ("bob",)),
        ("copy", ("ada",)),
        ("own", ()),
    ]


def test_a_rejected_copy_is_marked_as_well() -> None:
    copy = report("copy", "bob", source="x", score=None)
    made = board([entry("mine", "ada", source="x"), Entry.of(copy, Document.of(copy).id)])
    assert made.rows[0].twins == ("bob",)


def test_filters_choose_who_takes_part() -> None:
    entries = [
        entry("tensor", "ada", 1.4, cores=Badge.TENSOR_CORES, launch=Badge.DECLARED_LAUNCH),
        entry("cuda", "ada", 0.9, launch=Badge.DECLARED_LAUNCH),
        entry("old", "bob", 0.8, day=-30),
        entry("new", "bob", 0.7, day=1),
    ]
    assert places(board(entries, badges=frozenset({"cuda-cores"}))) == [
        (1, "cuda"),
        (2, "old"),
        (3, "new"),
    ]
    both = frozenset({"cuda-cores", "declared-launch"})
    assert places(board(entries, badges=both)) == [(1, "cuda")]
    assert places(board(entries, author="bob")) == [(1, "old"), (2, "new")]
    assert places(board(entries, since=date(2026, 1, 2))) == [(1, "new")]
    assert places(board(entries, gpu="h100")) == places(board(entries))
    assert rank(entries, NOW, Filter(gpu="A100")) == ()


def test_progress_is_each_run_that_beat_all_before_it() -> None:
    made = board(
        [
            entry("a", score=0.5, day=0),
            entry("b", score=0.4, day=1),
            entry("a", score=0.7, day=2),
            entry("c", score=0.7, day=3),
            entry("b", score=0.9, day=4),
        ]
    )
    assert [record.score for record in made.records] == [0.5, 0.7, 0.9]


def test_a_difference_within_the_noise_is_none() -> None:
    assert not distinguishable(entry(score=0.9), entry(score=0.903))
    assert distinguishable(entry(score=0.9), entry(score=0.91))
    assert distinguishable(entry(score=0.91), entry(score=0.9))
