"""What a board makes of gradings on several GPUs of one model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from harness.board.document import Document
from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.ranking import Board, as_data, rank
from harness.board.spread import PRIOR, Spread, difference, measured, said
from harness.judge.estimates import student
from harness.protocol.report import Badge
from tests.board.factory import entry, report

TENSOR = Badge.TENSOR_CORES


def board(entries: Sequence[Entry]) -> Board:
    (only,) = rank(entries, Edition.current())
    return only


def on(uuid: str, name: str, score: float, cores: Badge = TENSOR) -> Entry:
    """The same kernel of that name on this GPU."""
    return entry(name, score=score, source=name, cores=cores, uuid=uuid)


def half_width(made: Board, name: str) -> float:
    """Of a row's interval, as a share."""
    (row,) = [row for row in made.rows if row.entry.name == name]
    return math.log(row.high / row.low) / 2


def test_one_gpu_widens_nothing_and_is_said() -> None:
    made = board([on("GPU-0", "a", 1.0), on("GPU-0", "b", 0.9)])
    assert half_width(made, "a") == pytest.approx(0.002, rel=0.01)
    assert made.spreads == {} and "one GPU" in made.said_of_gpus


def test_before_anything_was_measured_the_prior_is_in_the_intervals() -> None:
    made = board([on("GPU-0", "a", 1.0), on("GPU-1", "b", 0.98), on("GPU-2", "c", 0.9)])
    assert made.spreads == {TENSOR: PRIOR} and "not measured here" in made.said_of_gpus
    assert half_width(made, "a") == pytest.approx(math.hypot(0.002, PRIOR.margin(1)), rel=0.01)
    assert [row.rank for row in made.rows] == [1, 1, 3]


def test_an_unnamed_gpu_may_be_any() -> None:
    unnamed = entry("b", score=0.98)._replace(uuid=None)
    assert [row.rank for row in board([entry("a", score=1.0), unnamed]).rows] == [1, 1]


def test_the_spread_is_that_of_programs_on_several_gpus() -> None:
    made = board([on("GPU-0", "33", 4.84), on("GPU-1", "33", 4.786), on("GPU-1", "34", 4.0)])
    spread = made.spreads[TENSOR]
    assert (spread.gpus, spread.kernels, spread.degrees) == (2, 1, PRIOR.degrees + 1)
    assert spread.deviation == pytest.approx(0.0078, rel=0.03)
    assert "from 1 of them on 2 GPUs" in made.said_of_gpus
    assert half_width(made, "33") == pytest.approx(
        student(3) * spread.deviation / math.sqrt(2), rel=0.03
    )
    (mean, _) = made.rows
    assert mean.gpus == 2 and mean.score == pytest.approx(math.sqrt(4.84 * 4.786))


def test_each_kind_of_cores_has_a_spread_of_its_own() -> None:
    cuda = Badge.CUDA_CORES
    same = [on(f"GPU-{gpu}", "17", 1.12, cuda) for gpu in range(6)]
    differing = [on(f"GPU-{gpu}", "33", 4.8 + 0.05 * (gpu % 2)) for gpu in range(6)]
    made = board([*same, *differing])
    assert made.spreads[cuda].deviation < 0.8 * PRIOR.deviation
    assert made.spreads[TENSOR].deviation > 0.6 * PRIOR.deviation
    assert made.spreads[cuda].degrees == PRIOR.degrees + 5


def test_many_kernels_on_two_gpus_are_one_difference_between_them() -> None:
    runs = [on(f"GPU-{gpu}", f"{kernel}", 1 + kernel) for gpu in (0, 1) for kernel in range(9)]
    apart = [on(f"GPU-{gpu}", "x", 1.0) for gpu in (2, 3)]
    joining = [on(f"GPU-{gpu}", "y", 1.0) for gpu in (1, 2)]
    assert measured(runs).degrees == PRIOR.degrees + 1
    assert measured([*runs, *apart]).degrees == PRIOR.degrees + 2
    assert measured([*runs, *apart, *joining]).degrees == PRIOR.degrees + 3


def test_claims_cannot_move_what_the_own_judge_has_measured() -> None:
    own = [each._replace(own=True) for each in (on("GPU-0", "a", 1.0), on("GPU-1", "a", 1.001))]
    claims = [on("GPU-8", "wild", 0.5), on("GPU-9", "wild", 2.0)]
    assert board([*own, *claims]).spreads == board(own).spreads
    assert board([*own, *claims]).gpus == ("GPU-0", "GPU-1")


def test_two_that_were_graded_on_the_same_gpus_are_compared_there() -> None:
    paired = [
        on(f"GPU-{gpu}", name, score * slower)
        for gpu, slower in enumerate((1, 0.96, 1.03))
        for name, score in (("a", 1.0), ("b", 0.99))
    ]
    assert [row.rank for row in board(paired).rows] == [1, 2]
    apart = [each for each in paired if (each.name == "a") == (each.uuid == "GPU-0")]
    assert [row.rank for row in board(apart).rows] == [1, 1]


def test_the_board_for_programs_says_it_all() -> None:
    data = as_data(board([on("GPU-0", "33", 4.84), on("GPU-1", "33", 4.786)]))
    assert data["gpus"] == ["GPU-0", "GPU-1"]
    ((spread),) = data["spread_between_gpus"]
    assert spread["cores"] == "tensor-cores" and spread["kernels"] == 1
    (row,) = data["rows"]
    assert row["gpus"] == 2 and row["low"] < 4.78 and row["score"] == pytest.approx(4.813, abs=1e-3)


def test_a_report_says_its_gpu() -> None:
    made = report(uuid="GPU-7")
    assert Entry.of(made, Document.of(made).id).uuid == "GPU-7"


def test_what_is_said_of_one_gpu_and_of_several_to_the_letter() -> None:
    assert said(["GPU-0123-4567-89"], {}) == (
        "Graded on one GPU of this model (GPU-0123-456): the ranks hold for it, and the "
        "intervals do not have in them how much others differ."
    )
    spreads = {
        Badge.CUDA_CORES: Spread(0.0123, 9, 3, 4),
        Badge.TENSOR_CORES: Spread(0.02, 9, 2, 0),
        None: Spread(0.005, 9, 2, 1),
    }
    assert said(["a", "b", "c"], spreads) == (
        "Graded on 3 GPUs of this model. The intervals have in them how much these differ, as a "
        "standard deviation: 1.2 % for kernels on CUDA cores (from 4 of them on 3 GPUs), 2 % for "
        "kernels on tensor cores (not measured here: no kernel was graded on two GPUs), 0.5 % for "
        "kernels on unknown cores (from 1 of them on 2 GPUs)."
    )


def test_a_run_on_another_gpu_is_less_surely_different() -> None:
    one, same, other = (
        entry("tile", score=score, uuid=uuid)
        for score, uuid in ((0.9, "GPU-0"), (0.92, "GPU-0"), (0.92, "GPU-1"))
    )
    near, far = difference(one, same), difference(one, other)
    assert near.value == far.value == pytest.approx(math.log(0.92 / 0.9))
    assert far.below == pytest.approx(math.hypot(near.below, math.sqrt(2) * PRIOR.margin(1)))
