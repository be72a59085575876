"""Tests of ranking: which entries are ranked, by which run, and which share a rank."""

from typing import Any

import pytest

from harness.board.document import Document
from harness.board.entry import Entry, Version
from harness.board.ranking import Board, Filter, Status, as_data, rank, ranks, status
from harness.protocol.report import Badge, Report
from tests.board.factory import H100, SOURCE, entry, our_fault, rejected, report, wrong

NOW = Version.current()
BEFORE = Version("0.0.1", NOW.cases)


def board(*entries: Entry, **filters: Any) -> Board:
    (only,) = rank(entries, Filter(**filters))
    return only


def places(made: Board) -> list[tuple[int | None, str]]:
    return [(row.rank, row.entry.name) for row in made.rows]


def verified(made: Report) -> Entry:
    return Entry.of(made, Document.of(made).id)._replace(verified=True)


def tile(score: float | None = 0.9, **facts: Any) -> Entry:
    """Return an entry of the same program, with any author."""
    return entry(**{"name": "tile", "author": "ada", "source": SOURCE, "score": score, **facts})


def rejection(day: float = 1, **facts: Any) -> Entry:
    outcome = wrong().outcome
    return verified(report("tile", "ada", outcome=outcome, day=day, source=SOURCE, **facts))


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], []),
        ([(1.0, 1.2), (0.9, 1.1), (0.7, 0.8)], [1, 1, 3]),
        ([(1.0, 1.2), (0.9, 0.99), (0.7, 0.8)], [1, 2, 3]),
        ([(1.0, 1.2), (0.9, 1.0)], [1, 1]),  # they touch
        ([(1.0, 1.1), (0.95, 1.05), (0.9, 0.97)], [1, 1, 2]),  # the last overlaps the second only
        # A wide one gains nothing.
        ([(1.0, 1.1), (0.9, 0.91), (0.5, 1.5), (0.1, 0.2)], [1, 2, 2, 4]),
    ],
)
def test_overlapping_intervals_share_a_rank(
    intervals: list[tuple[float, float]], expected: list[int]
) -> None:
    assert ranks(intervals) == expected


def test_a_program_is_shown_by_its_median_run() -> None:
    runs = [tile(score, day=day) for day, score in enumerate((0.9, 0.95, 0.8, 0.99))]
    (row,) = board(*runs).rows
    assert (row.entry.score, row.runs, row.gpus) == (0.9, 4, 1)
    assert (row.low, row.high) == (row.entry.low, row.entry.high)


def test_the_spread_between_gpus_counts_where_it_was_measured() -> None:
    here, there = tile(1.0), tile(0.98, uuid="GPU-1", day=1)
    near, far = entry("near", score=0.965), entry("far", score=0.93)
    alone = board(here, near)
    assert alone.spread is None and places(alone) == [(1, "tile"), (2, "near")]
    made = board(here, there, near, far)
    assert made.spread is not None and made.spread.share == pytest.approx(1 / 0.98 - 1)
    assert places(made) == [(1, "tile"), (1, "near"), (3, "far")]
    row = made.rows[0]
    assert (row.gpus, row.runs) == (2, 2) and row.low < (row.entry.low or 0)
    assert "differ by 2 %" in made.scope and "widened by 1 %" in made.scope


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([entry()], "Graded on one GPU of this model (GPU-0): ranks hold for it."),
        ([entry("a"), entry("b", uuid="GPU-1")], "No kernel was graded on two of them"),
        ([entry(half_width=0.1)], ""),
    ],
)
def test_a_board_says_for_which_gpus_it_holds(entries: list[Entry], said: str) -> None:
    scope = board(*entries).scope
    assert said in scope and bool(said) == bool(scope)


def test_each_author_and_name_has_its_best_program() -> None:
    made = board(
        entry("tile", "ada", 0.8, day=0),
        entry("tile", "ada", 0.9, day=1),
        entry("tile", "bob", 0.85),
        entry("wide", "ada", 0.95),
    )
    assert places(made) == [(1, "wide"), (2, "tile"), (3, "tile")]
    assert [row.entry.score for row in made.rows] == [0.95, 0.9, 0.85]
    assert [row.variants for row in made.rows] == [1, 2, 1]


def test_a_program_under_two_names_has_one_row() -> None:
    made = board(tile(0.9), tile(0.8, name="again", day=1), tile(0.85, name="more", day=2))
    assert [(row.entry.name, row.runs) for row in made.rows] == [("more", 3)]


def test_the_same_program_of_two_authors_is_marked() -> None:
    copied = tile(None, name="laptop", author="eve", source=f"// mine\n{SOURCE}")
    made = board(tile(), tile(0.7, author="bob"), copied, entry("own", "zoe", 0.6))
    assert [row.duplicates for row in made.rows] == [("bob", "eve"), ("ada", "eve"), ()]


def test_each_gpu_model_has_its_own_board() -> None:
    boards = rank([entry("a", gpu="NVIDIA L4"), entry("a", score=0.5), entry("b", score=0.6)])
    assert [(made.gpu, len(made.rows)) for made in boards] == [(H100, 2), ("NVIDIA L4", 1)]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (entry(), Status.RANKED),
        (entry()._replace(verified=False), Status.UNVERIFIED),
        (entry(score=None), Status.UNSCORED),
        (entry(quick=True), Status.QUICK),
        (entry(version=BEFORE), Status.OTHER_VERSION),
        (entry(version=Version(NOW.judge, NOW.cases + 1)), Status.OTHER_VERSION),
        (entry(score=0.9)._replace(low=0.8909), Status.UNSTEADY),
        (entry(score=0.9)._replace(low=0.8911, high=0.9089), Status.RANKED),
        (entry(score=0.9)._replace(high=0.9091), Status.UNSTEADY),
        (verified(rejected()), Status.NOT_ACCEPTED),
    ],
)
def test_a_status_says_why_something_is_not_ranked(made: Entry, expected: Status) -> None:
    assert status(made, NOW) is expected


def test_a_board_ranks_the_scores_of_its_latest_version() -> None:
    old = entry("tile", "ada", 1.2, version=BEFORE)
    only_old = board(old, entry("wide", "ada", 0.9, version=BEFORE))
    assert only_old.version == BEFORE and len(only_old.rows) == 2
    made = board(old, entry("wide", "ada", 0.9))
    assert made.version == NOW and places(made) == [(1, "wide")]
    (row,) = made.unranked
    assert (row.entry.name, row.status) == ("tile", Status.OTHER_VERSION)
    regraded = board(old, entry("wide", "ada", 0.9), entry("tile", "ada", 1.0, day=1))
    assert regraded.unranked == () and len(regraded.rows) == 2


@pytest.mark.parametrize(
    ("older", "newer"),
    [(("0.9.0", 5), ("0.10.0", 5)), (("0.9.0", 5), ("0.1.0", 6)), (("0.9.0", 5), ("0.9.0.1", 5))],
)
def test_versions_are_in_the_order_of_their_numbers(
    older: tuple[str, int], newer: tuple[str, int]
) -> None:
    assert Version(*older).age < Version(*newer).age


@pytest.mark.parametrize(
    ("entries", "score"),
    [
        ([rejection()], None),
        ([rejection(), tile(0.8, day=2)], 0.8),
        ([verified(our_fault(day=1))], 0.9),
        ([rejection(day=-1)], 0.9),
        ([rejection()._replace(verified=False)], 0.9),
        ([rejection(version=BEFORE)], 0.9),
        ([rejection()._replace(device="NVIDIA L4")], 0.9),
        ([rejection()._replace(device="CPU", on_gpu=False)], None),
        ([rejection()._replace(device="CPU", on_gpu=False, verdict="time-limit")], 0.9),
        ([rejection()._replace(author="bob", name="copy", sha256="0" * 64)], None),
    ],
)
def test_a_verified_rejection_removes_the_program(
    entries: list[Entry], score: float | None
) -> None:
    boards = rank([tile(), *entries])
    found = [row.entry.score for made in boards for row in made.rows]
    assert found == ([] if score is None else [score])


def test_unverified_entries_are_listed_apart_until_graded_here() -> None:
    claimed = tile(2.0, day=3)._replace(verified=False)
    other = entry("other", "bob", 3.0)._replace(verified=False)
    made = board(entry("best", score=0.5), claimed, other)
    assert places(made) == [(1, "best")]
    assert [row.entry.name for row in made.unverified] == ["tile", "other"]
    graded = board(entry("best", score=0.5), claimed, other, tile(0.8, day=4))
    assert [row.entry.name for row in graded.unverified] == ["other"]
    quick = board(entry("best", score=0.5), claimed, tile(0.8, day=4, quick=True))
    assert [row.entry.name for row in quick.unverified] == ["tile"], "a quick one tells too little"
    failed = board(entry("best", score=0.5), claimed, rejection(day=4))
    assert failed.unverified == ()
    (alone,) = rank([claimed])
    assert (alone.rows, len(alone.unverified), alone.scope) == ((), 1, "")


def test_filters_choose_who_is_ranked() -> None:
    entries = [
        entry("tensor", "ada", 1.4, cores=Badge.TENSOR_CORES, launch=Badge.DECLARED_LAUNCH),
        entry("cuda", "ada", 0.9, launch=Badge.DECLARED_LAUNCH),
        entry("old", "bob", 0.8, day=-30),
        entry("new", "bob", 0.7, day=1),
    ]
    cuda = board(*entries, badges=frozenset({"cuda-cores"}))
    assert places(cuda) == [(1, "cuda"), (2, "old"), (3, "new")]
    both = frozenset({"cuda-cores", "declared-launch"})
    assert places(board(*entries, badges=both)) == [(1, "cuda")]
    assert places(board(*entries, gpu="h100")) == places(board(*entries))
    assert rank(entries, Filter(gpu="A100")) == ()
    accurate = [each._replace(accuracy=grade) for each, grade in zip(entries, "ABC", strict=False)]
    assert places(board(*accurate, entries[3], accuracy="B")) == [(1, "tensor"), (2, "cuda")]


def test_programs_get_every_row() -> None:
    entries = [entry("a"), entry("c", score=0.7, half_width=0.1), tile()._replace(verified=False)]
    data = as_data(board(*entries))
    assert (data["gpu"], data["judge"], data["cases"]) == (H100, NOW.judge, NOW.cases)
    assert (data["gpus"], data["spread_between_gpus"]) == (["GPU-0"], None)
    found = [(row["rank"], row["status"]) for row in data["rows"]]
    assert found == [(1, "ranked"), (None, "unsteady")]
    (unverified,) = data["unverified"]
    assert (unverified["rank"], unverified["status"]) == (None, "unverified")


def test_entries_of_one_moment_have_a_fixed_order() -> None:
    same = [tile(author=name)._replace(id=id) for name, id in (("ada", "b"), ("bob", "a"))]
    assert [row.entry.author for row in board(*same).rows] == ["bob", "ada"]
    assert board(*same) == board(*same[::-1])
    later = tile(author="zoe", day=1)._replace(id="0")
    assert [row.entry.author for row in board(later, *same).rows] == ["bob", "ada", "zoe"]
