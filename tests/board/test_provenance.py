"""Where scores come from, said once for all rows that share it."""

from __future__ import annotations

from harness.board.edition import Edition
from harness.board.provenance import facts, own, shared
from tests.board.factory import entry

NOW = Edition.current()
ONE = entry("tile", "ada")


def test_every_fact_is_a_short_phrase() -> None:
    assert facts(ONE) == {
        "author": "by ada",
        "graded": "graded 2026-01-01",
        "driver": "driver 580.95.05",
        "cuda": "CUDA 13.0",
        "cublas": "cuBLAS 13.0.2",
        "judge": f"judge {NOW.judge}",
        "cases": f"cases {NOW.cases}",
        "clock": "1755 MHz",
    }


def test_what_is_not_known_is_not_said() -> None:
    found = facts(ONE._replace(driver=None, clock_mhz=None))
    assert "driver" not in found and "clock" not in found and len(found) == 6


def test_what_all_rows_share_is_not_said_of_each() -> None:
    other = ONE._replace(author="bob", clock_mhz=1980)
    common = shared([ONE, other, ONE])
    assert {*common} == {"graded", "driver", "cuda", "cublas", "judge", "cases"}
    assert own(other, common) == {"author": "by bob", "clock": "1980 MHz"}
    assert shared([ONE]) == facts(ONE) and own(ONE, facts(ONE)) == {}
    assert shared([]) == {}


def test_what_one_row_does_not_have_is_not_shared() -> None:
    without = ONE._replace(clock_mhz=None)
    assert "clock" not in shared([ONE, without]) and "clock" not in shared([without, ONE])
    assert own(ONE, shared([ONE, without])) == {"clock": "1755 MHz"}
