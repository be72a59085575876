"""What an index keeps of a report, field by field."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from harness.board import entry as indexing
from harness.board.edition import Edition
from harness.board.entry import ANONYMOUS, INDEXED, Entry, timestamp
from harness.protocol.report import Badge, Report
from tests.board.factory import rejected, report, uncompilable

NOW = Edition.current()


def test_every_field_of_an_accepted_report_is_kept() -> None:
    made = report("tile", "ada", 0.9, seed=1 << 100, launch=Badge.DECLARED_LAUNCH)
    assert made.kernel is not None
    assert Entry.of(made, "an id")._asdict() == {
        "id": "an id",
        "created": "2026-01-01T12:00:00.000000+00:00",
        "name": "tile",
        "author": "ada",
        "sha256": made.submission.sha256,
        "code": made.kernel.code_sha256,
        "verdict": "accepted",
        "stage": None,
        "quick": False,
        "judge": NOW.judge,
        "cases": NOW.cases,
        "seed": str(1 << 100),
        "device": "NVIDIA H100 80GB HBM3",
        "on_gpu": True,
        "driver": "580.95.05",
        "cuda": "13.0",
        "cublas": "13.0.2",
        "clock_mhz": 1755,
        "score": 0.9,
        "low": pytest.approx(0.898),
        "high": pytest.approx(0.902),
        "kernel_ms": 8,
        "baseline_ms": 7.2,
        "tflops": pytest.approx(51.54, abs=0.01),
        "peak_share": pytest.approx(0.77, abs=0.01),
        "cores": "cuda-cores",
        "launch": "declared-launch",
        "registers": 128,
        "uuid": "GPU-0",
        "own": False,
    }
    assert {*INDEXED} == {*Entry._fields} - {"own"}


def test_without_a_score_nothing_of_it_is_kept() -> None:
    made = Entry.of(report(score=None), "x")
    scored = ("score", "low", "high", "kernel_ms", "baseline_ms", "tflops", "peak_share")
    assert [getattr(made, name) for name in scored] == [None] * len(scored)
    assert (made.device, made.on_gpu, made.clock_mhz, made.uuid) == ("CPU", False, None, None)
    assert made.accepted and made.registers == 128


def test_what_never_ran_has_no_device_and_no_kernel() -> None:
    nothing = {"device": None, "kernel": None, "verification": None, "counters": None}
    made = Entry.of(uncompilable().model_copy(update=nothing | {"sanitizing": ()}), "x")
    absent = ("device", "driver", "cuda", "cublas", "uuid", "registers", "cores", "launch")
    assert [getattr(made, name) for name in absent] == [None] * len(absent)
    assert (made.verdict, made.stage, made.on_gpu) == ("compile-error", "compile", False)
    assert not made.accepted


def test_a_rejection_keeps_its_stage_and_quick_is_quick() -> None:
    assert Entry.of(rejected(), "x").stage == "sanitize"
    assert Entry.of(report(quick=True), "x").quick


def test_who_gives_no_name_is_anonymous() -> None:
    assert Entry.of(report(author=None), "x").author == ANONYMOUS == "anonymous"


def test_the_clock_is_that_of_the_rounds_that_count() -> None:
    made = report()
    assert made.measurement is not None
    first, *others = made.measurement.rounds
    rounds = (first.model_copy(update={"clock_mhz": 1, "dropped": True}), *others[:2])
    clocks = [
        each.model_copy(update={"clock_mhz": mhz})
        for each, mhz in zip(rounds, (1, 1740, 1755), strict=True)
    ]
    measured = made.measurement.model_copy(update={"rounds": tuple(clocks)})
    assert Entry.of(made.model_copy(update={"measurement": measured}), "x").clock_mhz == 1748


def with_kernel(**facts: Any) -> Report:
    made = report()
    assert made.kernel is not None
    return made.model_copy(update={"kernel": made.kernel.model_copy(update=facts)})


@pytest.mark.parametrize(
    ("badges", "cores", "launch"),
    [
        ((Badge.TENSOR_CORES, Badge.DEFAULT_LAUNCH), "tensor-cores", "default-launch"),
        ((Badge.CUDA_CORES, Badge.DECLARED_LAUNCH), "cuda-cores", "declared-launch"),
        ((Badge.DEFAULT_LAUNCH,), None, "default-launch"),
        ((), None, None),
    ],
)
def test_badges_are_of_the_cores_and_of_the_launch(
    badges: tuple[Badge, ...], cores: str | None, launch: str | None
) -> None:
    made = Entry.of(with_kernel(badges=badges), "x")
    assert (made.cores, made.launch) == (cores, launch)
    assert made.badges == {*badges}


def test_machine_code_that_could_not_be_read_has_no_badges() -> None:
    made = Entry.of(with_kernel(instructions={}), "x")
    assert made.badges == frozenset() and made.launch is None


def test_a_kernel_is_its_program_or_else_the_words_of_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = report()
    assert made.kernel is not None
    assert Entry.of(with_kernel(program_sha256="a" * 64), "x").code == "a" * 64
    assert Entry.of(made, "x").code == made.kernel.code_sha256
    source = made.submission.source
    for most, code in ((len(source), made.kernel.code_sha256), (len(source) - 1, None)):
        monkeypatch.setattr(indexing, "MAX_CODE", most)
        assert Entry.of(made, "x").code == (code or made.submission.sha256)
    monkeypatch.undo()
    unreadable = report(source="// solve: tile=0x0\n")
    assert Entry.of(unreadable, "x").code == unreadable.submission.sha256


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 31, 23, 5, tzinfo=UTC), "2026-01-31T23:05:00.000000+00:00"),
        (datetime(2026, 1, 31, 23, 5, 0, 7), "2026-01-31T23:05:00.000007+00:00"),
        (
            datetime(2026, 1, 31, 23, 5, tzinfo=timezone(timedelta(hours=-2))),
            "2026-02-01T01:05:00.000000+00:00",
        ),
    ],
)
def test_the_order_of_texts_is_that_of_moments(moment: datetime, text: str) -> None:
    assert timestamp(moment) == text


def test_an_id_is_shortened_to_sixteen_characters() -> None:
    whole = hashlib.sha256(b"x").hexdigest()
    assert Entry.of(report(), whole).short_id == whole[:16]
