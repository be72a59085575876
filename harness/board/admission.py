"""The one form in which a board keeps a report: bounded, with names normalised and text inert.

This module does not examine whether the content of a report is true. A report counts only if a
trusted key signed it (keys.py), regardless of its content.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from harness.board import escaping, names
from harness.judge.submission import MAX_BYTES
from harness.protocol.report import Report, Submission

MAX_TEXT = 20_000
"""The longest message, or details of a judge error, in characters."""

MAX_ITEMS = 20_000
"""The most rounds, cases, findings or lines with counters; the longest grading has fewer."""

MAX_INTEGER = 1 << 53
"""Larger integers are not the same in every reader of JSON."""

MAX_SEED = 1 << 128

MAX_NUMBER = 1e15
"""No time, rate or size in a report is larger."""

_AS_WRITTEN = (".source", ".printed")
"""Texts that are kept character by character, because every view escapes them."""


class Inadmissible(Exception):
    """The report cannot be kept; the message says why."""


def normalised(report: Report) -> Report:
    """Return the report in the form in which it is kept. Raises Inadmissible."""
    data = report.model_dump(exclude={"signature"})
    data["submission"] = named(report.submission).model_dump()
    if data["device"] is not None:
        data["device"]["name"] = _name("a device", data["device"]["name"], names.problem)
    created = report.created if report.created.tzinfo else report.created.replace(tzinfo=UTC)
    try:
        data["created"] = created.astimezone(UTC)
    except OverflowError:
        raise Inadmissible(f"the year {created.year} of its date is impossible") from None
    return Report.model_validate(_bounded(data))


def named(submission: Submission) -> Submission:
    """Return the submission with its names normalised. Raises Inadmissible."""
    author = submission.author
    if author is not None:
        author = _name("an author", author, names.problem)
    name = _name("a kernel file", submission.name, names.file_problem)
    return submission.model_copy(update={"name": name, "author": author})


def _name(what: str, text: str, why_not: Callable[[str], str | None]) -> str:
    name = names.normalised(text)
    problem = why_not(name)
    if problem is not None:
        raise Inadmissible(f"{name[:40]!r} cannot be the name of {what}: it {problem}")
    return name


def _bounded(value: Any, place: str = "", may_be_infinite: bool = False) -> Any:
    """Return a value without control characters, except in the source and the output.

    Raises Inadmissible where a number, text or list is larger than any judge writes.
    """

    def refusal(why: str) -> Inadmissible:
        return Inadmissible(f"{place.lstrip('.')} {why}")

    if isinstance(value, dict | list | tuple) and len(value) > MAX_ITEMS:
        raise refusal(f"has more than {MAX_ITEMS} items")
    match value:
        case bool() | None | datetime():
            return value
        case int():
            if abs(value) > (MAX_SEED if place.endswith("seed") else MAX_INTEGER):
                raise refusal("is too large a number")
        case float():
            if not may_be_infinite and not abs(value) <= MAX_NUMBER:
                raise refusal(f"is {value}, which cannot be measured")
        case str():
            most = MAX_BYTES if place.endswith(".source") else MAX_TEXT
            if len(value) > most:
                raise refusal(f"is longer than {most} characters")
            if type(value) is str and not place.endswith(_AS_WRITTEN):
                return escaping.laid_out(value)
        case dict():
            kept = {}
            for key, item in value.items():
                if len(str(key)) > names.MAX_NAME:
                    raise refusal("has a key that is too long")
                inside = may_be_infinite or key == "counterexample"
                name = escaping.one_line(key) if isinstance(key, str) else key
                kept[name] = _bounded(item, f"{place}.{key}", inside)
            return kept
        case list() | tuple():
            items = enumerate(value)
            return [_bounded(item, f"{place}[{n}]", may_be_infinite) for n, item in items]
    return value
