"""The lexer: PTX text to tokens (words, strings and punctuation), without comments and blanks."""

import functools
import re
import struct
from collections.abc import Iterable

from harness.ptxcpu.ptx.errors import PtxError
from harness.ptxcpu.ptx.syntax import Float, Integer

# Only text that ptxas reads in the same way is accepted: ASCII, no preprocessor lines, and no
# escapes in strings except those of a path's characters that are not ASCII.
_SKIPPED = r"[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/"
_READABLE = r"""\.(?:reg|local|shared|param|global|const)(?=\.)
    | "(?:[^"\\\r\n]|\\[0-7]{3})*"
    | (?:[A-Za-z0-9_$%.]|::)+
    | [{}()\[\],;:|!@+\-*<>=]"""
_TOKEN = re.compile(rf"(?>(?:{_SKIPPED})*)({_READABLE}|\Z|.+)", re.X | re.S)
"""The last alternative matches characters that are not permitted."""
_LAST = re.compile(_READABLE, re.X)

_SINGLE = re.compile(r"0[fF][0-9a-fA-F]{8}")
_DOUBLE = re.compile(r"0[dD][0-9a-fA-F]{16}")
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+|[1-9][0-9]*|0")
_OCTAL = re.compile(r"0[0-7]+")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*(?:[eE][0-9]+)?")
_TIGHT = (*(f" {sign}" for sign in ",;])+>"), *(f"{sign} " for sign in "@![(+<-"))
"""Signs with a blank that is left out."""

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$%][A-Za-z0-9_$]+")


def tokens(text: str) -> list[str]:
    """Return all tokens of a text, in order."""
    found: list[str] = _TOKEN.findall(text)
    while found and not found[-1]:  # the end of the text
        found.pop()
    if found and not _LAST.fullmatch(found[-1]):
        raise PtxError(f"unreadable PTX: {found[-1][:40].splitlines()[0]!r}")
    return found


def joined(words: Iterable[str]) -> str:
    """Return the tokens as one line of text, which has the same tokens when it is read again."""
    line = " ".join(words)
    for sign in _TIGHT:
        if sign in line:
            line = line.replace(sign, sign.strip())
    return line


_MAX_DIGITS = 100
"""The most digits of a number: 64 bits in binary."""


@functools.lru_cache(1 << 12)
def number(word: str) -> Integer | Float | None:
    """Return an integer (decimal, hexadecimal, octal, binary) of at most 64 bits, since ptxas
    ignores further bits, the constant WARP_SZ, or a float written as its bits."""
    if word == "WARP_SZ":  # what C++ calls warpSize; a name that ptxas lets nothing else have
        return Integer(32)
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
