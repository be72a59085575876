"""The tables of what several GPUs do, from gradings that were made up."""

from __future__ import annotations

from tests.gpus import tables
from tests.leaderboard.factory import entry
from tests.leaderboard.test_playoffs import A, B, playoff


def graded(name: str, score: float, uuid: str) -> dict[str, object]:
    return entry(name, score=score, source=name, uuid=uuid)._asdict()


def test_every_part_has_its_table() -> None:
    alone = [graded("33", 4.84, "GPU-0"), graded("33", 4.786, "GPU-1")]
    together = [graded("33", 4.829, "GPU-0"), graded("33", 4.785, "GPU-1")]
    runs = [
        {"gpus": 1, "gradings": 10, "accepted": 10, "seconds": 100.0},
        {"gpus": 2, "gradings": 20, "accepted": 20, "seconds": 104.0},
    ]
    text = tables(
        {
            "spread": {"alone": alone, "together": together},
            "throughput": {"file": "02", "runs": runs},
            "playoff": playoff(A, B, 1.01).model_dump(mode="json"),
        }
    )
    assert "| 33 | 4.8400 | 4.8290 | 4.7860 | 4.7850 | 1.12 % |" in text
    assert "0.78 % with 3 degrees of freedom" in text
    assert "| 2 | 20 | 20 | 104 | 346 | 0.96 |" in text
    assert "| a against b | +1.000 %" in text and "the first is faster" in text
