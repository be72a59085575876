"""The page of how long explanations take says what its program would."""

from __future__ import annotations

import re
from datetime import date

from tests.judge.explain.ladder import SOLUTIONS
from tests.judge.explain.times import head


def test_the_page_has_the_head_that_its_program_writes() -> None:
    page = (SOLUTIONS.parent / "reports" / "explain-times.md").read_text(encoding="utf-8")
    day = re.search(r"on (\d{4}-\d\d-\d\d), on a machine with (\d+) cores", page)
    load = re.search(r"\((\d+) process(es)? wanted them", page)
    assert day is not None and load is not None
    assert page.startswith(head(date.fromisoformat(day[1]), int(day[2]), int(load[1])))


def test_one_process_is_one() -> None:
    day = date(2026, 11, 22)
    assert "(1 process wanted them" in head(day, 2, 1)
    assert "(3 processes wanted them" in head(day, 2, 3)
