"""The circumstances of scores: those that all rows of a table share, and those of each row."""

from __future__ import annotations

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


def shared(entries: Iterable[Entry]) -> Facts:
    """Return the facts that all entries share."""
    all_facts = [facts(entry) for entry in entries]
    if not all_facts:
        return {}
    return {
        what: said
        for what, said in all_facts[0].items()
        if all(each.get(what) == said for each in all_facts)
    }


def own(entry: Entry, common: Facts) -> Facts:
    """Return the facts of an entry that are not common to all."""
    return {what: said for what, said in facts(entry).items() if what not in common}
