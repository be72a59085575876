"""What is measured on several GPUs: its tables, from gradings that were made up, and its time."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lab import gpus
from lab.gpus import Run, tables
from tests.board import factory
from tests.board.factory import entry
from tests.board.test_playoffs import A, B, playoff
from tests.contexts import Rate


def graded(name: str, score: float, uuid: str) -> dict[str, Any]:
    return entry(name, score=score, source=name, uuid=uuid)._asdict()


def run(
    count: int, seconds: float, *entries: dict[str, Any], when: list[float] | None = None
) -> dict[str, Any]:
    """when: each was done; by default all at the end."""
    return {
        "gpus": count,
        "cores": 16 * count,
        "gradings": len(entries),
        "accepted": len(entries),
        "held": {"measuring": 0.75, "checking": 0.2, "idle": 0.05} if count == 1 else None,
        "first": 12.5,
        "seconds": seconds,
        "verdicts": [],
        "entries": entries,
        "stages": [
            {"name": each["name"], "done": done, "context_ms": 160.0 * count, "verify": 2.5}
            for each, done in zip(entries, when or [seconds] * len(entries), strict=True)
        ],
    }


def test_every_part_has_its_table() -> None:
    text = tables(
        {
            "gradings": {
                "runs": [
                    run(1, 99.0, graded("33", 4.84, "GPU-0")),
                    run(1, 101.0, graded("33", 4.79, "GPU-1")),
                    run(2, 104.0, graded("33", 4.829, "GPU-0"), graded("33", 4.785, "GPU-1")),
                ]
            },
            "one-lane": run(1, 10.0, graded("33", 4.8448, "GPU-0")),
            "playoff": playoff(A, B, 1.01).model_dump(mode="json"),
            "driver": {"gpus": 2, "rates": [Rate(1, 10, 75)._asdict(), Rate(4, 12, 250)._asdict()]},
        }
    )
    assert "| kernel | GPU-0 alone | GPU-0 with 1 more | GPU-1 alone | GPU-1 with 1 more |" in text
    assert "| 33 | 4.8400 | 4.8290 | 4.7900 | 4.7850 | 0.92 % |" in text
    assert "with 3 degrees of freedom" in text
    assert "| 1 | 16 | 1 | 1 | 1 | 101.0 | 36 | – | – | – | 160 | 2.5 | – | 75 | 20 | 5 |" in text
    assert "| 2 | 32 | 2 | 2 | 2 | 104.0 | 35 | 0.96 | – | – | 320 | 2.5 | – | – | – | – |" in text
    assert "scores 4.8448, and 4.8400 while the next submission is compiled" in text
    assert "-0.10 %" in text
    assert "creates 12.0 CUDA contexts a second where 4 processes ask for them, and 10.0" in text
    assert "With 6 of them a grading takes 500 ms of its time" in text
    assert "| a against b | +1.000 %" in text and "the first is faster" in text


def test_how_fast_it_is_once_all_are_at_work() -> None:
    """Five gradings a GPU in 10 s each, of which the first took longer; two GPUs, in 12.5 s, one of
    which begins later."""

    def of(count: int, seconds: float, each: float) -> dict[str, Any]:
        entries = [graded("33", 4.8, f"GPU-{n % count}") for n in range(5 * count)]
        when = [seconds - each * (4 - n // count) - 2.5 * (n % count) for n in range(5 * count)]
        return run(count, seconds, *entries, when=when)

    text = tables({"gradings": {"runs": [of(1, 52.5, 10), of(2, 62.5, 12.5)]}})
    assert "| 1 | 16 | 5 | 5 | 5 | 52.5 | 343 | – | 360 | – | 160 | 2.5 | – | 75 | 20 | 5 |" in text
    assert (
        "| 2 | 32 | 10 | 10 | 10 | 62.5 | 288 | 0.84 | 288 | 0.80 | 320 | 2.5 | – | – | – | – |"
        in text
    )


def test_of_a_run_that_was_cut_short_no_rate_is_said() -> None:
    alone, both = (run(n, 50.0, graded("33", 4.8, "GPU-0"), when=[50.0]) for n in (1, 2))
    text = tables({"gradings": {"runs": [alone, both | {"gradings": 20}]}})
    assert "| 2 | 32 | 20 | 1 | 1 | 50.0 | – | – | – | – | 320 |" in text


def test_by_how_much_scores_differ_while_others_work() -> None:
    """Two kernels, each twice alone and twice beside others, 0.1 % higher then."""

    def both(factor: float) -> list[dict[str, Any]]:
        return [
            graded(name, score * factor * off, "GPU-0")
            for name, score in (("33", 4.84), ("02", 0.16))
            for off in (0.999, 1.001)
        ]

    runs = [run(1, 99.0, *both(1.0)), run(2, 99.0, *both(1.001), graded("33", 4.7, "GPU-1"))]
    text = tables({"gradings": {"runs": runs}})
    assert "alone by +0.100 % ± 0.100 % (one standard error, 8 gradings)." in text


def test_fewer_gpus_have_fewer_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [set(range(8))]
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: held[-1])
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: held.append(set(cores)))
    with gpus.cores_of(1 / 4) as cores:
        assert cores == 2 and held[-1] == {0, 1}
    assert held[-1] == set(range(8))


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
    monkeypatch.setattr(gpus, "LEAST", {"gradings": 1.0, "one-lane": 60.0})
    late = Run(tmp_path / "out", ["GPU-0"], time.monotonic() + 3)
    late.part("gradings", lambda: late.gradings(alone=1, together=[2]))
    (found,) = json.loads((tmp_path / "out-gradings.json").read_text())["runs"]
    assert (found["gpus"], found["gradings"], found["accepted"]) == (1, 10, 1)
    assert found["entries"][0]["score"] == pytest.approx(1.12)
    assert 0 < found["first"] == found["seconds"] < 3
    late.part("one-lane", late.one_lane)
    assert not (tmp_path / "out-one-lane.json").exists(), "there is no time for it"


def test_each_gpu_has_the_same_to_do_alone_and_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    caches: set[str | None] = set()

    def command(run: Run, *words: str, cache: str | None = None) -> list[gpus.Line]:
        asked.append(words)
        caches.add(cache)
        return [gpus.Line(5.0, factory.report("17_split_tail", score=1.12).model_dump_json())]

    monkeypatch.setattr(Run, "_command", command)
    four = Run(tmp_path / "out", ["a", "b", "c", "d"], time.monotonic() + 600)
    four.gradings(alone=2, together=[2, 4, 8])
    on = [words[words.index("--gpus") + 1] for words in asked]
    assert on == ["a", "b", "a,b", "a,b,c,d"]
    work = [len([word for word in words if word.endswith(".cu")]) for words in asked]
    assert work == [10, 10, 20, 40]
    assert None not in caches and len(caches) == 4, "what one has translated helps no other"


def test_one_report_alone_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes in many lines."""
    report = factory.report("17_split_tail", score=1.12).model_dump_json(indent=2)
    monkeypatch.setattr(gpus, "_HARNESS", judge(tmp_path, report))
    Run(tmp_path / "out", ["GPU-0"], time.monotonic() + 60).one_lane()
    found = json.loads((tmp_path / "out-one-lane.json").read_text())
    assert [each["score"] for each in found["entries"]] == [pytest.approx(1.12)]


def test_a_part_that_fails_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus.available, "why_no_cuda", lambda: None)
    monkeypatch.setattr(gpus.available, "gpus", lambda: ["GPU-0", "GPU-1"])
    found = json.dumps(playoff(A, B, 1.01).model_dump(mode="json"))

    def command(run: Run, *words: str, cache: str | None = None) -> list[gpus.Line]:
        return [gpus.Line(1.0, found)] if "playoff" in words else []

    def rate(gpus: Sequence[str], asking: int, seconds: float) -> Rate:
        return Rate(asking, 10.0, 80.0 * asking)

    monkeypatch.setattr(gpus.contexts, "rate", rate)
    monkeypatch.setattr(Run, "_command", command)
    assert gpus.main(["all", "--out", str(tmp_path / "out")]) == 0
    assert "A play-off on 2 GPUs" in (tmp_path / "out.md").read_text()
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"out-gradings.json", "out-playoff.json", "out-driver.json", "out.md"}
    found = json.loads((tmp_path / "out-driver.json").read_text())
    assert [each["asking"] for each in found["rates"]] == [1, 4] and found["gpus"] == 2
