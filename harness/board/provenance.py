"""Where scores come from: what all rows of a table share, to be said once, and what each has."""

from __future__ import annotations

from collections.abc import Iterable

from harness.board.entry import Entry

Facts = dict[str, str]
"""Short phrases, by what they are about."""


def facts(entry: Entry) -> Facts:
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
    """What is true of all of them."""
    all_facts = [facts(entry) for entry in entries]
    if not all_facts:
        return {}
    return {
        what: said
        for what, said in all_facts[0].items()
        if all(each.get(what) == said for each in all_facts)
    }


def own(entry: Entry, common: Facts) -> Facts:
    """What is not true of all."""
    return {what: said for what, said in facts(entry).items() if what not in common}
