"""Tests of the names of submissions as they come in."""

import pytest

from harness.arena.submitted import kernel_name


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
