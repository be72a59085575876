"""Escaping of text from strangers, so that terminals and pages show it without obeying it."""

import unicodedata

_ACTIVE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories that act instead of being visible: control (escape sequences), format (reading
direction, zero width), surrogates, line and paragraph separators."""


def one_line(text: str) -> str:
    """Return the text on one line, with a replacement character for each that would act."""
    return _replaced(text, keep="")


def lines(text: str) -> str:
    """Return text of many lines, as harmless as one_line makes it."""
    return _replaced("\n".join(line.expandtabs() for line in text.split("\n")), keep="\n")


def laid_out(text: str) -> str:
    """Return text of the same length, with its line breaks and tabs, for a view to lay out."""
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
