"""PTX text into tokens: words, strings and marks, with comments and blanks left behind."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterable

from harness.ptxcpu.ptx.errors import PtxError
from harness.ptxcpu.ptx.syntax import Float, Integer

# Read as ptxas reads it, and nothing else: ASCII, no preprocessor lines, and no escapes in strings
# but those of a path's letters that are not ASCII.
_SKIPPED = r"[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/"
_READABLE = r"""\.(?:reg|local|shared|param|global|const)(?=\.)
    | "(?:[^"\\\r\n]|\\[0-7]{3})*"
    | (?:[A-Za-z0-9_$%.]|::)+
    | [{}()\[\],;:|!@+\-*<>=]"""
_TOKEN = re.compile(rf"(?>(?:{_SKIPPED})*)({_READABLE}|\Z|.+)", re.X | re.S)
"""The last alternative is a rest that cannot be read."""
_LAST = re.compile(_READABLE, re.X)

_SINGLE = re.compile(r"0[fF][0-9a-fA-F]{8}")
_DOUBLE = re.compile(r"0[dD][0-9a-fA-F]{16}")
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+|[1-9][0-9]*|0")
_OCTAL = re.compile(r"0[0-7]+")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*(?:[eE][0-9]+)?")
_TIGHT = re.compile(r" (?=[,;\])+>])|(?<=[@!\[(+<\-]) ")

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$%][A-Za-z0-9_$]+")


def tokens(text: str) -> list[str]:
    """All tokens of a text, in order."""
    found: list[str] = _TOKEN.findall(text)
    while found and not found[-1]:  # the end of the text
        found.pop()
    if found and not _LAST.fullmatch(found[-1]):
        raise PtxError(f"unreadable PTX: {found[-1][:40].splitlines()[0]!r}")
    return found


def joined(words: Iterable[str]) -> str:
    """Tokens as one line of text, from which the same tokens are read again."""
    return _TIGHT.sub("", " ".join(words))


_MAX_DIGITS = 100
"""Of a number: 64 bits have 64 of them in binary."""


@functools.lru_cache(1 << 12)
def number(word: str) -> Integer | Float | None:
    """An integer (decimal, hexadecimal, octal, binary) of at most 64 bits, of which ptxas drops the
    others, or a float written as its bits."""
    if not word[:1].isdigit() or len(word) > _MAX_DIGITS:
        return None
    if _SINGLE.fullmatch(word):
        return Float(int(word[2:], 16), 32)
    if _DOUBLE.fullmatch(word):
        return Float(int(word[2:], 16), 64)
    if _DECIMAL.fullmatch(word):
        return Float(struct.unpack("<Q", struct.pack("<d", float(word)))[0], 64)
    plain = word.removesuffix("U")
    if _INTEGER.fullmatch(plain):
        value = int(plain, 0)
    elif _OCTAL.fullmatch(plain):
        value = int(plain, 8)
    else:
        return None
    return Integer(value) if value < 1 << 64 else None
