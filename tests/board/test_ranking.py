"""Ranks respect the noise, and nothing is ranked that cannot be compared."""

from __future__ import annotations

from datetime import date

import pytest

from harness.board import ranking
from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.places import is_known
from harness.board.ranking import (
    Board,
    Edition,
    Filter,
    Standing,
    as_data,
    rank,
    standing,
)
from harness.board.spread import difference
from harness.protocol.report import Badge
from tests.board.factory import H100, entry, rejected, report

NOW = Edition.current()
BEFORE = Edition("0.0.1", NOW.cases)


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


def test_rows_whose_order_is_not_known_share_a_place() -> None:
    made = board([entry("a", score=1.0), entry("b", score=0.998), entry("c", score=0.9)])
    assert places(made) == [(1, "a"), (1, "b"), (3, "c")]


def test_a_place_counts_who_is_known_to_be_faster() -> None:
    steps = [entry(f"{i}", score=1 - 0.002 * i) for i in range(5)]
    assert [row.rank for row in board(steps).rows] == [1, 1, 2, 3, 4]


def test_a_program_that_is_graded_again_has_the_mean_of_its_scores() -> None:
    lucky = [entry("a", score=score, day=day, source="a") for day, score in enumerate((0.9, 0.94))]
    (row,) = board([*lucky, entry("b", score=0.93)]).rows[1:]
    assert row.entry.name == "a" and row.runs == 2 and row.gpus == 1
    assert row.score == pytest.approx((0.9 * 0.94) ** 0.5)
    assert row.high - row.low == pytest.approx(2 * 0.002 / 2**0.5, rel=0.01)


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
            entry("also mine", "ada", 0.9, source="x", day=1),
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
    assert not is_known(difference(entry(score=0.9), entry(score=0.902)))
    assert is_known(difference(entry(score=0.9), entry(score=0.91)))
    assert is_known(difference(entry(score=0.91), entry(score=0.9)))


def test_two_gpus_may_differ_by_more_than_one_runs_noise() -> None:
    here, there = entry(score=0.9), entry(score=0.92, uuid="GPU-1")
    assert not is_known(difference(here, there)) and not is_known(difference(there, here))
    assert is_known(difference(here, entry(score=0.95, uuid="GPU-1")))


def test_what_was_scored_without_a_gpu_or_on_none_is_not_scored() -> None:
    made = entry()
    for changes in ({"score": None}, {"device": None}, {"on_gpu": False}):
        assert standing(made._replace(**changes), NOW) is Standing.UNSCORED


@pytest.mark.parametrize(
    ("low", "high", "steady"),
    [
        (0.8911, 0.9089, True),
        (0.8909, 0.9, False),
        (0.9, 0.9091, False),
        (0.9, 0.9, True),
        (None, 0.9, False),
    ],
)
def test_a_ranked_score_reaches_one_per_cent_to_either_side(
    low: float | None, high: float, steady: bool
) -> None:
    found = standing(entry(score=0.9)._replace(low=low, high=high), NOW)
    assert found is (Standing.RANKED if steady else Standing.UNSTEADY)


def test_a_board_of_another_gpu_is_made_by_scored_entries_alone() -> None:
    elsewhere = [
        entry("a", gpu="NVIDIA L4", quick=True),
        Entry.of(rejected(), "x")._replace(device="NVIDIA A100"),
    ]
    assert [made.gpu for made in rank([entry(), *elsewhere], NOW)] == [H100]
    assert rank(elsewhere, NOW) == ()


def test_a_board_says_how_far_its_ranks_hold_if_it_has_any() -> None:
    assert board([entry(half_width=0.1)]).said_of_gpus == ""
    assert board([entry()]).said_of_gpus.startswith("Graded on one GPU of this model (GPU-0)")


def test_programs_get_every_row_and_where_it_stands() -> None:
    entries = [
        entry("a", "ada", 0.9, source="x"),
        entry("b", "bob", 0.8, source="x"),
        entry("b", "bob", 0.8, source="x", day=1, uuid="GPU-1"),
        entry("c", "eve", 0.7, half_width=0.1),
    ]
    data = as_data(board(entries))
    assert {*data} == {
        *("gpu", "judge", "cases", "gpus", "spread_between_gpus", "playoffs", "rows")
    }
    assert (data["gpu"], data["judge"], data["cases"]) == (H100, NOW.judge, NOW.cases)
    assert data["gpus"] == ["GPU-0", "GPU-1"] and data["playoffs"] == []
    (spread,) = data["spread_between_gpus"]
    assert (spread["cores"], spread["gpus"], spread["kernels"]) == ("cuda-cores", 2, 1)
    assert spread["deviation"] > 0 and spread["degrees"] == 3
    first, second, third = data["rows"]
    assert first == {
        **entries[0]._asdict(),
        "rank": 1,
        "standing": "ranked",
        "score": 0.9,
        "low": pytest.approx(first["score"] ** 2 / first["high"], rel=1e-3),
        "high": first["high"],
        "gpus": 1,
        "runs": 1,
        "same_source_as": ["bob"],
    }
    assert first["low"] < 0.89 and first["high"] > 0.91  # with the spread in it
    assert (second["gpus"], second["runs"], second["same_source_as"]) == (2, 2, ["ada"])
    assert (third["rank"], third["standing"]) == (None, "unsteady")


def test_kernels_of_unknown_cores_have_a_spread_too() -> None:
    runs = [
        entry(score=0.9, source=f"{cores}", uuid=uuid)._replace(cores=cores)
        for cores in ("tensor-cores", None, "cuda-cores")
        for uuid in ("GPU-0", "GPU-1")
    ]
    assert [*board(runs).spreads] == ["cuda-cores", "tensor-cores", None]


def test_a_day_begins_with_its_first_moment() -> None:
    first = entry("first")._replace(created="2026-01-02")
    assert Filter(since=date(2026, 1, 2)).admits(first)
    assert not Filter(since=date(2026, 1, 3)).admits(first)
    assert not Filter(gpu="x").admits(first._replace(device=None))
    assert Filter(gpu="h100").admits(first)


def test_of_two_of_one_moment_the_order_is_that_of_their_ids() -> None:
    same = [entry("tile", "Ada"), entry("tile", "ada")]
    twins = [each._replace(id=id) for each, id in zip(same, "ba", strict=True)]
    for given in (twins, twins[::-1]):
        assert {row.entry.author for row in board(given).rows} == {"ada"}


def test_an_author_is_spelled_as_the_own_judge_first_met_them() -> None:
    claimed = entry("one", "Ada", 0.8, day=0)
    own = entry("two", "ada", 0.9, day=1)._replace(own=True)
    assert {row.entry.author for row in board([claimed, own]).rows} == {"ada"}


def test_a_board_is_made_by_what_is_scored_and_chosen() -> None:
    other = entry("b", gpu="NVIDIA L4")
    rejected_there = Entry.of(rejected(), "x")._replace(device="NVIDIA B200")
    made = rank([entry("a"), other, rejected_there], NOW, Filter(gpu="h100"))
    assert [each.gpu for each in made] == [H100]


def test_what_is_not_ranked_stands_best_first() -> None:
    old = [entry(name, score=score, edition=BEFORE) for name, score in (("a", 0.7), ("b", 0.9))]
    made = board([*old, entry("c", score=0.8, edition=BEFORE)])
    assert [row.entry.name for row in made.unranked] == ["b", "c", "a"]


def test_a_program_under_two_names_has_one_row() -> None:
    one = entry("tile", "ada", 0.9, source="the same")
    again = entry("again", "ada", 0.8, source="the same", day=1)
    old = entry("older", "ada", 0.95, source="the same", day=-1, edition=BEFORE)
    made = board([one, again, old])
    assert len(made.rows) == 1 and made.unranked == ()


def test_a_program_is_shown_by_the_run_nearest_to_its_score() -> None:
    runs = [entry("tile", "ada", score, source="one", day=score) for score in (0.8, 0.9, 0.91)]
    (row,) = board(runs).rows
    assert row.entry.score == 0.9 and 0.85 < row.score < 0.9


def test_steady_is_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "MAX_HALF_WIDTH", 0.25)
    made = entry("tile")._replace(score=1.0, low=0.75, high=1.25)
    assert standing(made, NOW) is Standing.RANKED
    for wider in ({"low": 0.74}, {"high": 1.26}):
        assert standing(made._replace(**wider), NOW) is Standing.UNSTEADY


def test_a_claim_that_another_disputes_is_not_ranked() -> None:
    claim = entry("tile", "ada", 0.9)
    rejection = claim._replace(
        id="x", created="2026-02-01T00:00:00", verdict="memory-error", score=None
    )
    made = board([claim, rejection])
    assert [(row.rank, row.standing) for row in made.unranked] == [(None, Standing.DISPUTED)]
    assert made.rows == ()
