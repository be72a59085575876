"""Names in one form, and what is none."""

from __future__ import annotations

import pytest

from harness.board.names import author_problem, file_problem, normalised, problem


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("ada\tlovelace", "ada lovelace"),
        ("ada\u2003lovelace", "ada lovelace"),
        ("  ada\n\nlovelace ", "ada lovelace"),
        ("a\u200bda", "ada"),
        ("\uff41da", "ada"),
    ],
)
def test_a_name_has_one_form(name: str, kept: str) -> None:
    assert normalised(name) == kept


@pytest.mark.parametrize(("marks", "fits"), [(2, True), (3, True), (4, False), (5, False)])
def test_a_letter_has_three_marks_at_most(marks: int, fits: bool) -> None:
    name = "x" + "\u0316" * marks + "y\u0316\u0316"
    assert problem(name) == (None if fits else "has more than 3 marks on one letter")


def test_letters_without_a_name_are_of_no_alphabet() -> None:
    assert author_problem("a\u4e00\U00017000b") is None
    assert author_problem("a_\U0001b170b") is None
    assert author_problem("\ue000") is None
    assert author_problem("аda") == (
        "mixes letters of two alphabets (Cyrillic and Latin) in one word"
    )


@pytest.mark.parametrize("name", [".", "..", "a/b", "a\\b"])
def test_a_file_leads_nowhere_else(name: str) -> None:
    assert file_problem(name) == "would lead to another folder"
    assert file_problem(f"{name[0]}x.cu".replace("/", "").replace("\\", "")) is None
