"""Layouts of matrices in memory: guards on either side, and random leads."""

import numpy as np

from harness.devices.guards import (
    ALIGNMENT,
    MIN_GUARD_BYTES,
    PIECE_BYTES,
    Layout,
    changed_inputs,
    same_bits,
)
from problem.cases import Shape
from tests.requests import inputs_of


def test_guards_fill_the_pieces_of_a_matrix() -> None:
    for _ in range(200):
        layout = Layout.draw(384, 1024)
        assert layout.total % PIECE_BYTES == 0 and layout.size == 384 * 1024 * 4
        assert min(layout.before, layout.behind) >= MIN_GUARD_BYTES


def test_leads_are_drawn_anew_in_multiples_of_the_alignment() -> None:
    assert all(Layout.draw(64, 64).before % 4096 == 0 for _ in range(100))
    found = {Layout.draw(64, 64, ALIGNMENT).before % 256 for _ in range(1000)}
    assert found == {*range(0, 256, 16)}


def test_a_nan_is_itself_and_zero_is_not_minus_zero() -> None:
    nan, zero = (np.full((1, 1), value, np.float32) for value in (np.nan, 0))
    assert same_bits(nan, nan.copy()) and not same_bits(zero, -zero)
    given = inputs_of(Shape(1, 1, 1), zero, nan)
    assert changed_inputs((-zero, nan), given) == ("A",)
    assert changed_inputs((nan, zero), given) == ("A", "B")
