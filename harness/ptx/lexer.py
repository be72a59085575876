"""PTX text into tokens: words, strings and marks, with comments and blanks left behind."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

from harness.ptx.errors import PtxError
from harness.ptx.syntax import Float, Integer

# Read as ptxas reads it, and nothing else: no escapes in strings, no preprocessor lines, ASCII.
_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)
      | (?P<state_space>\.(?:reg|local|shared|param|global|const)(?=\.))
      | (?P<string>"[^"\\\r\n]*")
      | (?P<word>(?:[A-Za-z0-9_$%.]|::)+)
      | (?P<mark>[{}()\[\],;:|!@+\-*<>=])""",
    re.X | re.S,
)

_SINGLE = re.compile(r"0[fF][0-9a-fA-F]{8}")
_DOUBLE = re.compile(r"0[dD][0-9a-fA-F]{16}")
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+|[1-9][0-9]*|0")
_OCTAL = re.compile(r"0[0-7]+")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*(?:[eE][0-9]+)?")
_TIGHT = re.compile(r" (?=[,;\])+>])|(?<=[@!\[(+<\-]) ")

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$%][A-Za-z0-9_$]+")


def tokens(text: str) -> list[str]:
    """All tokens of a text, in order."""
    found: list[str] = []
    at = 0
    for match in _TOKEN.finditer(text):
        if match.start() != at:
            break
        if match.lastgroup != "skip":
            found.append(match[0])
        at = match.end()
    if at < len(text):
        raise PtxError(f"unreadable PTX: {text[at : at + 40].splitlines()[0]!r}")
    return found


def joined(words: Iterable[str]) -> str:
    """Tokens as one line of text, from which the same tokens are read again."""
    return _TIGHT.sub("", " ".join(words))


def number(word: str) -> Integer | Float | None:
    """An integer (decimal, hexadecimal, octal, binary) or a float written as its bits."""
    if not word[:1].isdigit():
        return None
    if _SINGLE.fullmatch(word):
        return Float(int(word[2:], 16), 32)
    if _DOUBLE.fullmatch(word):
        return Float(int(word[2:], 16), 64)
    plain = word.removesuffix("U")
    if _INTEGER.fullmatch(plain):
        return Integer(int(plain, 0))
    if _OCTAL.fullmatch(plain):
        return Integer(int(plain, 8))
    if _DECIMAL.fullmatch(word):
        return Float(struct.unpack("<Q", struct.pack("<d", float(word)))[0], 64)
    return None
