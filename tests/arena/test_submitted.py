"""Tests of the names of submissions: as they come in, and as the database keeps them."""

import pytest

from harness.arena.submitted import NAMELESS, kernel_name, stored
from tests.arena.submitting import submission
from tests.board.factory import SOURCE


@pytest.mark.parametrize("name", ["../tile", ""])
def test_a_stored_name_that_no_report_can_have_is_replaced(name: str) -> None:
    replaced = {"name": NAMELESS, "author": None}
    assert stored(name, "ada", SOURCE) == submission(source=SOURCE).model_copy(update=replaced)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a b.cu", "a b"),
        ("C:\\x\\tile.cu", "tile"),
        ("../../etc/passwd", "passwd"),
        ("\uff34ile.cu", "Tile"),
        ("ядро", "ядро"),
        ("α_tile", "α_tile"),
        ("v2 (σ)", "v2 (σ)"),
    ],
)
def test_a_kernel_is_named_after_its_file(file: str, name: str) -> None:
    assert kernel_name(file) == name
