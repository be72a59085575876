"""Makes a stranger's text harmless to a terminal, a page and a table: shown as text, not obeyed."""

from __future__ import annotations

import unicodedata

_ACTIVE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories that act instead of being seen: control (escape sequences), format (reading
direction, zero width), surrogates, line and paragraph separators."""


def one_line(text: str) -> str:
    """The text on one line; each character that would act is replaced by one that says so."""
    return _replaced(text, keep="")


def lines(text: str) -> str:
    """Text of many lines, as harmless as one_line."""
    return _replaced("\n".join(line.expandtabs() for line in text.split("\n")), keep="\n")


def laid_out(text: str) -> str:
    """Text of the same length with its line breaks and tabs, for whoever lays it out."""
    return _replaced(text, keep="\n\t")


def json_text(text: str, encoding: str = "utf-8") -> str:
    """Escape in JSON what would act on a terminal, and what the output's encoding does not have."""
    missing = {each for each in set(text) if not each.encode(encoding, "ignore")}
    for character in {*_active(text, keep="\n"), *missing}:
        units = character.encode("utf-16-be", "surrogatepass").hex()
        escaped = "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
        text = text.replace(character, escaped)
    return text


def _replaced(text: str, keep: str) -> str:
    for character in _active(text, keep):
        text = text.replace(character, "\N{REPLACEMENT CHARACTER}")
    return text


def _active(text: str, keep: str) -> list[str]:
    if text.isprintable():
        return []
    return [each for each in set(text).difference(keep) if unicodedata.category(each) in _ACTIVE]
