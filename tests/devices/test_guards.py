"""Where matrices lie: addresses tell no launch from another, and what is kept for them is stale."""

from __future__ import annotations

import itertools

from harness.devices.guards import MIN_GUARD_BYTES, PIECE_BYTES, Layout, Layouts
from problem.cases import Shape

SMALL, OTHER = Shape(64, 512, 48), Shape(65, 512, 48)


def leads(found: tuple[Layout, ...]) -> tuple[int, ...]:
    return tuple(layout.before for layout in found)


def test_guards_fill_the_pieces_that_a_matrix_lies_in() -> None:
    for layout in Layouts().of(SMALL):
        assert layout.total % PIECE_BYTES == 0
        assert min(layout.before, layout.behind) >= MIN_GUARD_BYTES
    assert [layout.size for layout in Layouts().of(SMALL)] == [
        64 * 512 * 4,
        512 * 48 * 4,
        64 * 48 * 4,
    ]


def test_a_shape_lies_where_it_lay_in_about_every_other_launch() -> None:
    layouts = Layouts()
    found = [leads(layouts.of(SMALL)) for _ in range(200)]
    again = sum(one == other for one, other in itertools.pairwise(found))
    assert 60 < again < 140


def test_another_shape_lies_anywhere() -> None:
    layouts = Layouts()
    found = [leads(layouts.of(shape)) for shape in [SMALL, OTHER] * 50]
    assert len(set(found)) > 95


def test_matrices_begin_at_any_multiple_of_16_bytes() -> None:
    found = [lead for _ in range(400) for lead in leads(Layouts().of(SMALL))]
    assert all(lead % 16 == 0 for lead in found)
    assert {lead % 256 for lead in found} == {*range(0, 256, 16)}


def test_timed_matrices_begin_at_pages() -> None:
    assert all(Layout.draw(64, 64).before % 4096 == 0 for _ in range(100))
