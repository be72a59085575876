"""Names of people, kernels and GPUs, each in one form, so that nobody has two rows."""

from __future__ import annotations

import unicodedata

MAX_NAME = 100
"""Characters: longer than any name, and short enough for a line of a table."""


def normalised(name: str) -> str:
    """NFKC, without characters that cannot be seen, with single spaces between its words.

    Otherwise a zero-width space or a full-width letter would make a second author of one name.
    """
    compatible = unicodedata.normalize("NFKC", name)
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
    return None


def file_problem(name: str) -> str | None:
    """Why this cannot be the name of a kernel file, either."""
    if name in (".", "..") or "/" in name or "\\" in name:
        return "would lead to another folder"
    return problem(name)
