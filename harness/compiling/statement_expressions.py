"""Writes GCC's statement expressions, `({ f(x); x + 1; })`, as calls of lambdas.

nvcc accepts them, and NVRTC does not. What is inserted stays on its line, so that line numbers stay
those of the user's file. A block that is the argument of a macro, as in `REPEAT({ i++; })`, is no
such expression and stays as it is.
"""

import re
from bisect import bisect
from collections.abc import Set
from dataclasses import dataclass, field

from harness.compiling.lexical import without_text

_GAP = re.compile(r"(?:\s|\\\n)*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NO_VALUE = {
    *("if", "for", "while", "do", "switch", "asm", "__asm__", "__asm", "using", "typedef"),
    *("static_assert", "else"),
}
"""The first words of statements that are no expressions."""

_CALL = re.compile(r"(#\s*+define\s++)?\b([A-Za-z_]\w*+)(?:\s|\\\n)*+\(")
_BEFORE_AN_EXPRESSION = {"return", "else", "do"}
"""Words with a meaning that may stand before an expression in parentheses."""


@dataclass
class _Brackets:
    """An opening bracket, and the ends of the statements directly behind it."""

    start: int
    behind_parenthesis: bool
    semicolons: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)


def as_lambdas(code: str, leaving: Set[str]) -> str:
    """Return the code with each statement expression as a call of a lambda, except for those with
    a word that leaves the function around them.

    leaving: these words, which are `return`, `goto` and the macros that stand for them.
    """
    plain = without_text(code)
    exits = [match.start() for match in _WORD.finditer(plain) if match[0] in leaving]
    calls = {
        match.end() - 1
        for match in _CALL.finditer(plain)
        if not match[1] and match[2] not in _BEFORE_AN_EXPRESSION
    }
    insertions: dict[int, str] = {}
    open_brackets = [_Brackets(-1, False)]
    for match in re.finditer(r"[(){}\[\];]", plain):
        sign, at = match[0], match.start()
        if sign in "({[":
            around = open_brackets[-1].start
            is_behind = sign == "{" and plain[around] == "(" and around not in calls
            is_behind = is_behind and _behind(plain, around + 1) == at
            open_brackets.append(_Brackets(at, is_behind))
        elif sign == ";":
            open_brackets[-1].semicolons.append(at)
        elif len(open_brackets) > 1:
            inner = open_brackets.pop()
            if sign == "}":
                open_brackets[-1].blocks.append(at)
            is_expression = (
                inner.behind_parenthesis
                and plain.startswith(")", _behind(plain, at + 1))
                and (inner.semicolons or _begins_without_value(plain, inner.start + 1))
            )
            if is_expression and bisect(exits, inner.start) == bisect(exits, at):
                insertions |= {inner.start: "[&] ", at + 1: "()", **_returned(plain, inner, at)}
    places = sorted(insertions)
    ends = zip([0, *places], [*places, len(code)], strict=True)
    return "".join(insertions.get(start, "") + code[start:end] for start, end in ends)


def _behind(plain: str, at: int) -> int:
    """Return the place of the next word or sign."""
    match = _GAP.match(plain, at)
    return match.end() if match else at


def _begins_without_value(plain: str, at: int) -> bool:
    word = _WORD.match(plain, _behind(plain, at))
    return word is not None and word[0] in _NO_VALUE


def _returned(plain: str, block: _Brackets, end: int) -> dict[int, str]:
    """Return the `return` to insert if the last statement of a block is an expression."""
    *others, last = [block.start, *block.semicolons]
    if _behind(plain, last + 1) != end:
        return {}
    start = _behind(plain, others[-1] + 1)
    inside = (_behind(plain, each + 1) for each in block.blocks if start < each < last)
    start = max([start, *(each for each in inside if each < last)])
    return {} if start == last or _begins_without_value(plain, start) else {start: "return "}
