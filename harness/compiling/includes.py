"""Every header that a source could ask for, found before the compiler is asked.

For these stand-ins are supplied (headers.py). What was in fact included is told by the preprocessor
itself, and held to the same rules, so nothing depends on this reader seeing everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.compiling.errors import SourceError
from harness.compiling.macros import leading_to


@dataclass(frozen=True, slots=True)
class Include:
    """One #include: the header as written between its quotes or brackets, and its line."""

    header: str
    line: int


_GAP = rb"(?:[ \t\v\f\r]|/\*(?:[^*]|\*(?!/))*+\*/)*+"
"""What the preprocessor takes for a space; possessive, so that no file can make it slow."""

_HASH = rb"^" + _GAP + rb"(?:#|%:|\?\?=)" + _GAP
_REST = rb"((?:/\*(?:[^*]|\*(?!/))*+\*/|[^\n])*+)"
_DIRECTIVE = re.compile(_HASH + rb"(include_next|include|import|embed)\b" + _GAP, re.MULTILINE)
_CONDITION = re.compile(_HASH + rb"(?:if|elif)\b" + _REST, re.MULTILINE)
_DEFINITION = re.compile(_HASH + rb"define\b" + _GAP + rb"(\w+)" + _REST, re.MULTILINE)
_PASTES = re.compile(rb"##|%:%:|\?\?=")
_QUERY = re.compile(rb"__has_(?:include|include_next|embed)\b" + _GAP + rb"(\(?)" + _GAP)
_ASKS_NOTHING = re.compile(
    rb"(?:\bdefined[ \t]*\(?[ \t]*|^[ \t]*(?:#|%:)[ \t]*ifn?def[ \t]+|^[ \t]*//(?:(?!\*/).)*)\Z"
)
"""What may stand before a query without parentheses; elsewhere it would give it another name."""
_MAX_LINE = 1000
"""No line that names a query is longer; else a file of one line would be read over and over."""
_HEADER = re.compile(rb'<([^>\n]+)>|"([^"\n]+)"')


def includes(code: bytes) -> tuple[Include, ...]:
    """Every header that the preprocessor could be asked for, wherever the request stands.

    It works on the text before comments and conditions are understood, and refuses a request that
    does not name its header literally.
    """
    spliced = code.replace(b"\\\n", b"")
    _check_conditions(spliced)
    # Splicing loses lines; count them by the original text up to the same header name.
    found: list[Include] = []
    for pattern in (_DIRECTIVE, _QUERY):
        line, counted = 1, 0
        for match in pattern.finditer(spliced):
            line, counted = line + spliced.count(b"\n", counted, match.end()), match.end()
            if match.re is _DIRECTIVE and match[1] == b"embed":
                raise SourceError("#embed is not allowed in a submission", line)
            header = _HEADER.match(spliced, match.end())
            if header is None:
                if match.re is _QUERY and not match[1] and _asks_nothing(spliced, match.start()):
                    continue
                raise SourceError(
                    "an #include must name its header literally, between < > or quotes", line
                )
            name = (header[1] or header[2]).decode(errors="replace")
            found.append(Include(name, line))
    return tuple(found)


def _asks_nothing(spliced: bytes, at: int) -> bool:
    """Whether a query there is only named; what stands in front of it is looked at so far."""
    start = max(0, at - _MAX_LINE)
    end_of_line = spliced.rfind(b"\n", start, at)
    if end_of_line < 0 and start > 0:
        return False
    return _ASKS_NOTHING.search(spliced[max(end_of_line + 1, start) : at]) is not None


def _check_conditions(spliced: bytes) -> None:
    """A condition that pastes tokens could ask for a header under a name that stands nowhere."""
    definitions = [(m[1].decode(), m[2]) for m in _DEFINITION.finditer(spliced)]
    pasting = {name for name, body in definitions if _PASTES.search(body)}
    pasting |= leading_to(pasting, ((name, _words(body)) for name, body in definitions))
    for match in _CONDITION.finditer(spliced):
        if pasting & _words(match[1]):
            line = spliced.count(b"\n", 0, match.end()) + 1
            raise SourceError("a macro that pastes tokens cannot stand in an #if", line)


def _words(code: bytes) -> set[str]:
    return set(re.findall(r"\w+", code.decode(errors="replace")))
