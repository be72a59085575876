"""The file from which one starts."""

from problem import starter


def test_the_starter_holds_the_kernel() -> None:
    text = starter.text()
    assert text.startswith("//") and "matrix_multiplication_kernel(" in text
