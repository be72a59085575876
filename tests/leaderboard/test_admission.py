"""The limits of what a board admits, each from both sides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from harness.leaderboard import admission, document
from harness.leaderboard.admission import Implausible, check, normalised
from harness.leaderboard.document import Document, StoreError
from harness.leaderboard.signing import SigningKey
from harness.report import Report
from tests.leaderboard.factory import rejected, report, wrong


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


def test_a_name_has_a_hundred_characters_at_most_and_is_shown_shortened() -> None:
    assert normalised(named(name="x" * 100)).submission.name == "x" * 100
    with pytest.raises(Implausible) as refused:
        normalised(named(author="y" * 101))
    shown = "y" * 40
    assert str(refused.value) == (
        f"'{shown}' cannot be the name of an author: it is longer than 100 characters"
    )


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


def test_a_list_has_a_length_that_a_report_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    made = report()
    assert made.measurement is not None
    longest = len(made.verification.cases) if made.verification else 0
    monkeypatch.setattr(admission, "MAX_ITEMS", longest)
    assert admitted(made)
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
