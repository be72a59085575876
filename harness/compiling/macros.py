"""Which macros of a file lead to which words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set


def leading_to(words: Set[str], bodies: Iterable[tuple[str, Set[str]]]) -> set[str]:
    """Macros whose body holds one of the words, or the name of another such macro.

    bodies: each macro's name, and the words of its body.
    """
    users: dict[str, list[str]] = defaultdict(list)
    for name, body in bodies:
        for word in body:
            users[word].append(name)
    found: set[str] = set()
    waiting = list(words)
    while waiting:
        for name in users.pop(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found
