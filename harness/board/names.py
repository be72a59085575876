"""Names of people, kernels and devices, each in one form, so that no one has two rows."""

import re
import unicodedata

MAX_NAME = 100
"""The longest name in characters, which fits a line of a table."""

MAX_MARKS = 3
"""The most accents on one letter. No script needs more, and many would reach into other rows."""

_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Characters that are no controls and yet show nothing: Unicode's Default_Ignorable_Code_Point, and
the blank of Braille."""


def normalised(name: str) -> str:
    """Return the name in NFKC, without invisible characters and with single spaces.

    Otherwise a zero-width space or a full-width letter would make a second author of one name.
    """
    compatible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", name))
    visible = "".join(
        " " if character.isspace() else character
        for character in compatible
        if character.isspace() or unicodedata.category(character)[0] != "C"
    )
    return " ".join(unicodedata.normalize("NFKC", visible).split())


def problem(name: str) -> str | None:
    """Return why this normalised text cannot be a name, or None where it can."""
    if len(name) > MAX_NAME:
        return f"is longer than {MAX_NAME} characters"
    if not name:
        return "has no visible character"
    marks = "".join("m" if unicodedata.combining(c) else " " for c in name)
    if "m" * (MAX_MARKS + 1) in marks:
        return f"has more than {MAX_MARKS} marks on one letter"
    return None


def file_problem(name: str) -> str | None:
    """Return why this cannot be the name of a kernel file, or None where it can."""
    if name in (".", "..") or "/" in name or "\\" in name:
        return "would lead to another folder"
    return problem(name)
