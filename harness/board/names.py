"""Names of people, kernels and GPUs, each in one form, so that nobody has two rows."""

from __future__ import annotations

import re
import unicodedata

MAX_NAME = 100
"""Characters: longer than any name, and short enough for a line of a table."""

MAX_MARKS = 3
"""Accents on one letter: no script needs more, and a tower of them reaches into other rows."""

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Not controls, and yet nothing is seen of them: Unicode's Default_Ignorable_Code_Point, and the
blank of Braille."""

_ALPHABETS = {"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "COPTIC", "GEORGIAN", "CHEROKEE", "LISU"}
"""With letters that look like those of another."""

_LATIN = str.maketrans(
    "авеёкмнорстухіјѕԁһӏԛԝѵ" + "αβεζηικμνορτυχ" + "ıɑɡɩ",
    "abeëkmhopctyxijsdhlqwv" + "abezhikmvoptyx" + "iagi",
)
"""Small letters that look like Latin ones, or whose capitals do: from confusables.txt of Unicode's
technical report 39."""


def normalised(name: str) -> str:
    """NFKC, without characters that cannot be seen, with single spaces between its words.

    Otherwise a zero-width space or a full-width letter would make a second author of one name.
    """
    compatible = _UNSEEN.sub("", unicodedata.normalize("NFKC", name))
    seen = "".join(
        " " if character.isspace() else character
        for character in compatible
        if character.isspace() or unicodedata.category(character)[0] != "C"
    )
    return " ".join(unicodedata.normalize("NFKC", seen).split())


def problem(name: str) -> str | None:
    """Why this cannot be a name; None where it can. The name is normalised."""
    if len(name) > MAX_NAME:
        return f"is longer than {MAX_NAME} characters"
    if not name:
        return "has no character that can be seen"
    marks = "".join("m" if unicodedata.combining(c) else " " for c in name)
    if "m" * (MAX_MARKS + 1) in marks:
        return f"has more than {MAX_MARKS} marks on one letter"
    return None


def author_problem(name: str) -> str | None:
    """Why this cannot be a person's name, either: a word of two alphabets is made to look like
    another."""
    for word in re.findall(r"\w+", name):
        alphabets = {unicodedata.name(letter, "").partition(" ")[0] for letter in word}
        mixed = sorted(alphabets & _ALPHABETS)
        if len(mixed) > 1:
            shown = " and ".join(alphabet.title() for alphabet in mixed)
            return f"mixes letters of two alphabets ({shown}) in one word"
    return problem(name)


def device_problem(name: str) -> str | None:
    """Why this cannot be a device's name: a GPU spelt in two alphabets would have two boards."""
    return problem(name) if name.isascii() else "has letters that are in no device's name"


def skeleton(name: str) -> str:
    """The same for names that look the same: capital or small, in this alphabet or in that."""
    return normalised(name).casefold().translate(_LATIN)


def file_problem(name: str) -> str | None:
    """Why this cannot be the name of a kernel file, either."""
    if name in (".", "..") or "/" in name or "\\" in name:
        return "would lead to another folder"
    return problem(name)
