"""The limits of what a board admits, each from both sides."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from harness.board import admission, document
from harness.board.admission import Implausible, check, normalised
from harness.board.document import Document, StoreError
from harness.board.entry import timestamp
from harness.board.signing import SigningKey
from harness.judge.stages.score import score
from harness.protocol.report import Accepted, Badge, CompileError, Report, Score, Stage
from tests.board.factory import rejected, report, wrong


def admitted(made: Report) -> bool:
    try:
        check(normalised(made))
    except Implausible:
        return False
    return True


def graded(moment: datetime) -> Report:
    return report().model_copy(update={"created": moment})


def test_a_report_is_neither_too_old_nor_from_the_future() -> None:
    first = datetime(2025, 1, 1, tzinfo=UTC)
    assert admitted(graded(first)) and not admitted(graded(first - timedelta(seconds=1)))
    soon = datetime.now(UTC) + timedelta(hours=23)
    assert admitted(graded(soon)) and not admitted(graded(soon + timedelta(hours=2)))


def test_a_moment_is_kept_in_utc() -> None:
    elsewhere = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=3)))
    kept = normalised(graded(elsewhere)).created
    assert kept == elsewhere and kept.utcoffset() == timedelta(0) and kept.day == 31


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
    ],
)
def test_a_moment_that_is_none_in_utc_is_no_moment(moment: datetime) -> None:
    with pytest.raises(Implausible, match=f"the year {moment.year}, which is not so"):
        normalised(graded(moment))


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "EAST-5")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_a_moment_that_does_not_say_where_is_one_of_utc() -> None:
    kept = normalised(graded(datetime(2026, 1, 1, 12))).created
    assert (kept.utcoffset(), kept.hour) == (timedelta(0), 12)
    assert timestamp(datetime(2026, 1, 1, 12)) == "2026-01-01T12:00:00.000000+00:00"
    east = datetime(2026, 1, 1, 17, tzinfo=timezone(timedelta(hours=5)))
    assert timestamp(east) == "2026-01-01T12:00:00.000000+00:00"


def failing(error: float) -> Report:
    made = wrong()
    counterexample = made.outcome.counterexample  # type: ignore[union-attr]
    outcome = made.outcome.model_copy(
        update={"counterexample": counterexample.model_copy(update={"error": error})}
    )
    return made.model_copy(update={"outcome": outcome})


def test_a_wrong_answer_is_further_off_than_is_allowed() -> None:
    assert admitted(failing(1.01e-5)) and not admitted(failing(1e-5))


def named(**names: Any) -> Report:
    made = report()
    return made.model_copy(update={"submission": made.submission.model_copy(update=names)})


def test_names_are_kept_in_their_one_form() -> None:
    kept = normalised(named(name="ti\u200ble  \uff12", author=" a\u200bda ")).submission
    assert (kept.name, kept.author) == ("tile 2", "ada")


def test_a_name_has_a_hundred_characters_at_most_and_is_shown_shortened() -> None:
    assert normalised(named(name="x" * 100)).submission.name == "x" * 100
    with pytest.raises(Implausible) as refused:
        normalised(named(author="y" * 101))
    shown = "y" * 40
    assert str(refused.value) == (
        f"'{shown}' cannot be the name of an author: it is longer than 100 characters"
    )


def test_what_a_name_is_of_is_said() -> None:
    for made, what in (
        (named(name="a/b"), "'a/b' cannot be the name of a kernel file: it would lead"),
        (on_device(name=""), "'' cannot be the name of a device: it has no character"),
    ):
        with pytest.raises(Implausible) as refused:
            normalised(made)
        assert str(refused.value).startswith(what)


def on_device(**facts: Any) -> Report:
    made = report()
    assert made.device is not None
    return made.model_copy(update={"device": made.device.model_copy(update=facts)})


def why_not(made: Report) -> str:
    with pytest.raises(Implausible) as refused:
        check(made)
    return str(refused.value)


@pytest.mark.parametrize("fact", ["multiprocessors", "max_clock_mhz", "fp32_peak_tflops"])
def test_a_gpu_has_what_its_peak_follows_from(fact: str) -> None:
    said = "its GPU has no multiprocessors, no clock or no peak"
    assert why_not(on_device(**{fact: None})) == said


def test_a_peak_follows_up_to_its_last_digits() -> None:
    peak = 132 * 128 * 2 * 1980 / 1e6
    check(on_device(fp32_peak_tflops=peak * (1 + 0.9e-6)))
    check(on_device(fp32_peak_tflops=peak * (1 - 0.9e-6)))
    assert "does not follow" in why_not(on_device(fp32_peak_tflops=peak * (1 + 1.1e-6)))


def test_a_gpu_measures_and_nothing_else_does() -> None:
    made = report()
    assert why_not(made.model_copy(update={"measurement": None})) == "nothing was measured"
    unscored = report(score=None)
    with_rounds = unscored.model_copy(update={"measurement": made.measurement})
    assert why_not(with_rounds) == "it was measured without a GPU"


def of_kernel(made: Report, **facts: Any) -> Report:
    assert made.kernel is not None
    return made.model_copy(update={"kernel": made.kernel.model_copy(update=facts)})


def test_badges_follow_from_instructions_and_launch() -> None:
    check(report(launch=Badge.DECLARED_LAUNCH))
    unread = of_kernel(report(), instructions={}, badges=(Badge.DEFAULT_LAUNCH,))
    check(unread)
    assert "its badges do not" in why_not(of_kernel(report(), instructions={}))
    declared = (Badge.CUDA_CORES, Badge.DECLARED_LAUNCH)
    assert "its badges do not" in why_not(of_kernel(report(), badges=declared))


def verified(error: float) -> Report:
    made = report()
    assert made.verification is not None
    cases = tuple(
        each if each.case.exact else each.model_copy(update={"error": error})
        for each in made.verification.cases
    )
    found = made.verification.model_copy(update={"cases": cases, "worst_error": error})
    return made.model_copy(update={"verification": found})


def test_the_largest_error_allowed_is_allowed() -> None:
    check(verified(1e-5))
    assert "has an error of 1.01e-05" in why_not(verified(1.01e-5))


def timed(made: Report, each: Any = None, **facts: Any) -> Report:
    """each: what becomes of every round."""
    assert made.measurement is not None
    rounds = tuple(r.model_copy(update=each(r)) if each else r for r in made.measurement.rounds)
    measurement = made.measurement.model_copy(update={"rounds": rounds} | facts)
    return made.model_copy(update={"measurement": measurement})


def test_a_measurement_may_be_at_its_limits() -> None:
    made = report()
    check(timed(made, lambda r: {"check": 1.0}))
    assert "is wrong, and yet" in why_not(timed(made, lambda r: {"check": 1.01}))
    check(timed(made, audit_error=1e-5))
    assert "checked in full" in why_not(timed(made, audit_error=1.01e-5))
    check(timed(made, lambda r: {"kernel_host_ms": r.kernel_ms, "baseline_host_ms": r.baseline_ms}))
    assert "host's clock" in why_not(timed(made, lambda r: {"kernel_host_ms": r.kernel_ms - 0.01}))


def test_a_launch_may_take_less_than_a_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.judge.stages.score.possible_tflops", lambda *_: float("inf"))
    made = report()
    names = ("kernel_ms", "baseline_ms", "kernel_host_ms", "baseline_host_ms")
    assert made.device is not None
    quick = timed(made, lambda r: {name: getattr(r, name) / 16 for name in names})
    assert quick.measurement is not None
    found = score(quick.measurement.rounds, made.device)
    check(quick.model_copy(update={"outcome": Accepted(score=found)}))


def test_a_score_may_be_all_that_is_possible_and_of_as_few_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = report(rounds=7)  # one of which does not count
    assert isinstance(made.outcome, Accepted) and isinstance(made.outcome.score, Score)
    tflops = made.outcome.score.tflops
    monkeypatch.setattr("harness.judge.stages.score.possible_tflops", lambda *_: tflops)
    check(made)
    claimed = made.outcome.model_copy(
        update={"score": made.outcome.score.model_copy(update={"ratio": 0.95})}
    )
    assert "its score has a ratio of 0.95" in why_not(made.model_copy(update={"outcome": claimed}))
    monkeypatch.setattr("harness.judge.stages.score.possible_tflops", lambda *_: tflops * 0.999)
    assert "is more than its GPU can do" in why_not(made)


def unread(stage: Stage, source: str) -> Report:
    made = named(source=source, sha256="0" * 64)
    outcome = CompileError(stage=stage, message="not UTF-8")
    return made.model_copy(update={"outcome": outcome, "measurement": None})


def test_a_source_that_could_not_be_read_is_known_by_its_sum_alone() -> None:
    check(unread(Stage.READ, ""))
    for stage, source in ((Stage.READ, "some"), (Stage.COMPILE, ""), (Stage.COMPILE, "some")):
        said = "its source does not have the sha256 that it names"
        assert why_not(unread(stage, source)) == said


@pytest.mark.parametrize(
    ("seed", "right"), [(1 << 128, True), ((1 << 128) + 1, False), (1 << 53, True)]
)
def test_a_seed_may_be_larger_than_other_numbers(seed: int, right: bool) -> None:
    assert admitted(report().model_copy(update={"seed": seed})) is right


def with_message(text: str) -> Report:
    made = rejected()
    outcome = made.outcome.model_copy(update={"message": text})
    return made.model_copy(update={"outcome": outcome})


def test_a_text_has_a_length_that_a_report_can_have() -> None:
    assert admitted(with_message("x" * 20_000))
    with pytest.raises(Implausible, match=r"^outcome\.message is longer than 20000 characters$"):
        normalised(with_message("x" * 20_001))
    normalised(named(source="x" * 20_001))


def test_a_list_has_a_length_that_a_report_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    made = report()
    assert made.measurement is not None
    longest = len(made.verification.cases) if made.verification else 0
    monkeypatch.setattr(admission, "MAX_ITEMS", longest)
    assert admitted(made)
    normalised(counted(**{f"OP{n}": 1 for n in range(longest)}))
    with pytest.raises(Implausible) as refused:
        normalised(counted(**{f"OP{n}": 1 for n in range(longest + 1)}))
    assert str(refused.value) == f"kernel.instructions has more than {longest} items"
    monkeypatch.setattr(admission, "MAX_ITEMS", longest - 1)
    with pytest.raises(Implausible, match=rf"verification\.cases has more than {longest - 1} item"):
        normalised(made)


def counted(**instructions: int) -> Report:
    made = report()
    assert made.kernel is not None
    kernel = made.kernel.model_copy(update={"instructions": instructions})
    return made.model_copy(update={"kernel": kernel})


def test_a_key_and_an_integer_have_a_size_that_a_report_can_have() -> None:
    normalised(counted(**{"X" * 100: 1 << 53}))
    with pytest.raises(Implausible, match=r"^kernel\.instructions has a key that is too long$"):
        normalised(counted(**{"X" * 101: 1}))
    with pytest.raises(Implausible, match=r"^kernel\.instructions\.FFMA is too large a number$"):
        normalised(counted(FFMA=(1 << 53) + 1))


def measured(error: float) -> Report:
    made = report()
    assert made.verification is not None
    verification = made.verification.model_copy(update={"worst_error": error})
    return made.model_copy(update={"verification": verification})


def test_a_number_is_one_that_somebody_can_have_measured() -> None:
    normalised(measured(1e15))
    for error in (1.1e15, float("inf"), float("nan")):
        with pytest.raises(Implausible, match=r"^verification\.worst_error is .* nobody can have"):
            normalised(measured(error))
    normalised(failing(float("inf")))  # what was found wrong may be anything


def test_texts_do_not_act_but_for_source_and_output() -> None:
    made = with_message("one\x1b[31mtwo").model_copy(update={"printed": "\x1b[31mred"})
    kept = normalised(made)
    assert "\x1b" not in kept.outcome.message  # type: ignore[union-attr]
    assert kept.printed == "\x1b[31mred"
    assert kept.submission.source == made.submission.source
    assert "\x1b" not in next(iter(normalised(counted(**{"A\x1b": 1})).kernel.instructions))  # type: ignore[union-attr]


def test_a_text_that_is_larger_than_any_report_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = report().model_dump_json()
    monkeypatch.setattr(document, "MAX_CHARACTERS", len(text))
    Document.parse(text, "it")
    monkeypatch.setattr(document, "MAX_CHARACTERS", len(text) - 1)
    message = r"^it is larger than any report; `grade --json` writes one\.$"
    with pytest.raises(StoreError, match=message):
        Document.parse(text, "it")


def test_a_signature_is_no_part_of_the_text(tmp_path: Path) -> None:
    made = Document.of(report())
    assert '"signature"' not in made.text and made.json == made.text
    signed = made.signed(SigningKey.at(tmp_path / "key").sign(made.text))
    assert signed.text == Document.of(signed.report).text == made.text
    assert signed.json.startswith(made.text[:-1]) and '"signature":' in signed.json
    assert Document.parse(signed.json, "it") == signed
