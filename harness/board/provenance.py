"""The circumstances of scores: those usual in a table, and those of a row that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.board.entry import Entry

Facts = dict[str, str]
"""Short phrases by subject."""


def facts(entry: Entry) -> Facts:
    """Return who graded the entry when, and with which software."""
    known = {
        "author": ("by", entry.author),
        "graded": ("graded", entry.created[:10]),
        "driver": ("driver", entry.driver),
        "cuda": ("CUDA", entry.cuda),
        "cublas": ("cuBLAS", entry.cublas),
        "judge": ("judge", entry.judge),
        "cases": ("cases", entry.cases),
    }
    found = {what: f"{word} {value}" for what, (word, value) in known.items() if value is not None}
    return found if entry.clock_mhz is None else {**found, "clock": f"{entry.clock_mhz} MHz"}


def usual(entries: Iterable[Entry]) -> Facts:
    """Return the facts that more than half of the entries have in common."""
    all_facts = [facts(entry) for entry in entries]
    counts = Counter(fact for each in all_facts for fact in each.items())
    return dict(fact for fact, count in counts.items() if 2 * count > len(all_facts))


def own(entry: Entry, common: Facts) -> Facts:
    """Return the facts of an entry that differ from the usual ones."""
    return {what: said for what, said in facts(entry).items() if common.get(what) != said}
