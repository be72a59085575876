"""An expression has the right value, or one sentence says why it has none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.tune.expression import MOST, ExpressionError, evaluate

NAMES = {"BM": 128, "BN": 64, "BK": 16, "STAGES": 3, "ZERO": 0}


def value(expression: str) -> int:
    return evaluate(expression, {}, dict(NAMES))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("BM", 128),
        (" 4 * STAGES * BK * (BM + BN) ", 36_864),
        ("BM / 48", 2),
        ("BM // 48", 2),
        ("-BM / 48", -2),
        ("-BM % 48", -32),
        ("BM % -48", 32),
        ("BM - BN - BK", 48),
        ("0x10", 16),
        (str(MOST), MOST),
        ("1+" * 99 + "11", 110),
    ],
)
def test_arithmetic_follows_c(expression: str, expected: int) -> None:
    assert value(expression) == expected


NO_ARITHMETIC = (
    *("__import__('os').system('true')", "BM.__class__", "[16][0]", "16 if BM else 8"),
    *("9 ** 9 ** 9", "BM and BN", "1.5", "(BM := 3)", "f'{BM}'"),
)


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        *((each, "may contain only whole numbers") for each in NO_ARITHMETIC),
        *(
            (each, "is not an expression")
            for each in ("", "BM +", "4 * (BM", "a b", "1;2", "1'000")
        ),
        *((f"BM {each} ZERO", "divides by zero") for each in ("/", "//", "%")),
        ("UNKNOWN", "`UNKNOWN` is no constant"),
        (f"{MOST} + 1", "too large a number"),
        ("1+" * 100 + "1", "is longer than 200 characters"),
    ],
)
def test_a_sentence_says_why_there_is_no_value(expression: str, sentence: str) -> None:
    with pytest.raises(ExpressionError, match=sentence):
        value(expression)


@given(st.text(max_size=60))
def test_any_text_is_a_number_or_a_sentence(expression: str) -> None:
    try:
        assert isinstance(value(expression), int)
    except ExpressionError as error:
        assert str(error)
