"""What is measured on several GPUs: its tables, from gradings that were made up, and its time."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import gpus
from tests.gpus import Run, tables
from tests.leaderboard import factory
from tests.leaderboard.factory import entry
from tests.leaderboard.test_playoffs import A, B, playoff


def graded(name: str, score: float, uuid: str) -> dict[str, Any]:
    return entry(name, score=score, source=name, uuid=uuid)._asdict()


def run(count: int, seconds: float, *entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "gpus": count,
        "gradings": len(entries),
        "accepted": len(entries),
        "seconds": seconds,
        "entries": entries,
    }


def test_every_part_has_its_table() -> None:
    text = tables(
        {
            "gradings": {
                "runs": [
                    run(1, 100.0, graded("33", 4.84, "GPU-0")),
                    run(2, 104.0, graded("33", 4.829, "GPU-0"), graded("33", 4.785, "GPU-1")),
                ]
            },
            "one-lane": run(1, 10.0, graded("33", 4.8448, "GPU-0")),
            "arena": {
                "submissions": 8,
                "seconds": 60.0,
                "lease_seconds": 15.0,
                "waiting": 1,
                "lost": 0,
                "doubled": 0,
                "killed": {"worker": "gpu-1", "at": "measure", "gradings_in_hand": 2},
                "attempts": {"finished": 8, "died": 2},
                "scores": [["GPU-0", 0.161], ["GPU-1", 0.161]],
            },
            "playoff": playoff(A, B, 1.01).model_dump(mode="json"),
        }
    )
    assert "| kernel | GPU-0 alone | GPU-0 with 1 more | GPU-1 with 1 more |" in text
    assert "| 33 | 4.8400 | 4.8290 | 4.7850 | 0.92 % |" in text
    assert "with 3 degrees of freedom" in text
    assert "| 2 | 2 | 2 | 104 | 35 | 0.96 |" in text
    assert "scores 4.8448, and 4.8400 while the next submission is compiled" in text
    assert "-0.10 %" in text
    assert "killed: gpu-1 at measure, with 2 in hand. Lost: 0; doubled: 0; when" in text
    assert "the time was over 1 waited." in text
    assert "Attempts: 2 died, 8 finished." in text
    assert "| a against b | +1.000 %" in text and "the first is faster" in text


def judge(tmp_path: Path, *lines: str, seconds: float = 0.0) -> tuple[str, ...]:
    """In the judge's place: a program that writes these lines and then takes so long."""
    script = tmp_path / "judge.py"
    script.write_text(
        f"import time\nprint({chr(10).join(lines)!r}, flush=True)\ntime.sleep({seconds})\n"
    )
    return sys.executable, str(script)


def test_what_was_graded_when_the_time_is_over_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = factory.report("17_split_tail", score=1.12).model_dump_json()
    monkeypatch.setattr(gpus, "_HARNESS", judge(tmp_path, report, seconds=600))
    late = Run(tmp_path / "out", ["GPU-0"], time.monotonic() + 3)
    late.gradings(tiles=2)
    (found,) = json.loads((tmp_path / "out-gradings.json").read_text())["runs"]
    assert (found["gpus"], found["gradings"], found["accepted"]) == (1, 4, 1)
    assert found["entries"][0]["score"] == pytest.approx(1.12)
    late.arena(submissions=2)
    late.one_lane()
    assert not (tmp_path / "out-arena.json").exists(), "there is no time for it"
    assert not (tmp_path / "out-one-lane.json").exists()
