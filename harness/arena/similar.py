"""Finds accepted kernels of different people that are nearly the same, and shows two side by side.

Two texts are as alike as the runs of tokens that they have in common (A. Broder, "On the
resemblance and containment of documents", 1997). Comments, layout, names and numbers are no
difference.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from harness.board.compare import MAX_LINES

RUN = 16
"""The number of tokens in a run."""

SHORTEST = 150
"""Texts with fewer runs are not compared: short kernels are similar without copying."""

ALIKE = 0.6
"""The share of common runs from which two texts count as similar."""

MAX_PAIRS = 100

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)|\"(?:\\.|[^\"\\\n])*\"|\S",
    re.DOTALL,
)
_KEYWORDS = frozenset(("const", "do", "else", "float", "for", "if", "int", "return", "while"))


@dataclass(frozen=True, slots=True)
class Kernel:
    """An accepted kernel. id: of its submission, or the name of one of the solutions."""

    id: str
    name: str
    author: str
    text: str
    program: str | None = None
    """The identity of its PTX."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two kernels, the earlier first, and how alike they are; 1 where the program is the same."""

    earlier: Kernel
    later: Kernel
    share: float
    same_program: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A line of each of two texts; the same but for names, numbers and layout, or not."""

    a: str
    b: str
    same: bool


def solutions() -> list[Kernel]:
    """Return the repository's solutions, from which somebody may have begun."""
    files = sorted(SOLUTIONS.glob("*.cu"))
    return [Kernel(file.stem, file.stem, "solutions/", file.read_text("utf-8")) for file in files]


def pairs(kernels: Sequence[Kernel], base: str) -> list[Pair]:
    """Return the most alike kernels of each two people, the most alike first.

    kernels: oldest first. base: a text that everybody was given, which counts for nothing.
    """
    given = _runs(base)
    runs = [_runs(each.text) - given for each in kernels]
    best: dict[tuple[str, str], Pair] = {}
    for later, b in enumerate(kernels):
        for earlier, a in enumerate(kernels[:later]):
            if a.author == b.author:
                continue
            same = a.program is not None and a.program == b.program
            share = 1.0 if same else _share(runs[earlier], runs[later])
            key = (min(a.author, b.author), max(a.author, b.author))
            if share >= ALIKE and (key not in best or share > best[key].share):
                best[key] = Pair(replace(a, text=""), replace(b, text=""), share, same)
    return sorted(best.values(), key=lambda pair: -pair.share)[:MAX_PAIRS]


def _share(a: set[int], b: set[int]) -> float:
    small, large = sorted((len(a), len(b)))
    if small < max(SHORTEST, ALIKE * large):
        return 0.0
    common = len(a & b)
    return common / (small + large - common)


def _runs(text: str) -> set[int]:
    tokens = _tokens(text)
    return {hash(tuple(tokens[at : at + RUN])) for at in range(len(tokens) - RUN + 1)}


def _tokens(text: str) -> list[str]:
    found = []
    for token in _TOKEN.finditer(text):
        word = token[0]
        if token["name"]:
            found.append(word if word in _KEYWORDS else "name")
        elif token["number"]:
            found.append("0")
        elif not word.startswith(("//", "/*")):
            found.append(word)
    return found


def side_by_side(a: str, b: str) -> list[Row]:
    """Return the lines of two texts, aligned; the first lines of long ones."""
    one, other = (text.splitlines()[:MAX_LINES] for text in (a, b))
    words = [[" ".join(_tokens(line)) for line in lines] for lines in (one, other)]
    rows = []
    matcher = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    for kind, a1, a2, b1, b2 in matcher.get_opcodes():
        for left, right in zip_longest(one[a1:a2], other[b1:b2], fillvalue=""):
            rows.append(Row(left, right, kind == "equal"))
    return rows
