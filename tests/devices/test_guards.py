"""Layouts of matrices in memory: guards on either side, and random leads."""

from harness.devices.guards import ALIGNMENT, MIN_GUARD_BYTES, PIECE_BYTES, Layout


def test_guards_fill_the_pieces_of_a_matrix() -> None:
    for _ in range(50):
        layout = Layout.draw(64, 512)
        assert layout.total % PIECE_BYTES == 0 and layout.size == 64 * 512 * 4
        assert min(layout.before, layout.behind) >= MIN_GUARD_BYTES


def test_leads_are_drawn_anew_in_multiples_of_the_alignment() -> None:
    assert all(Layout.draw(64, 64).before % 4096 == 0 for _ in range(100))
    found = {Layout.draw(64, 64, ALIGNMENT).before % 256 for _ in range(1000)}
    assert found == {*range(0, 256, 16)}
