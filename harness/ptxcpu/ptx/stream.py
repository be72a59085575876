"""The stream of tokens of a PTX text, on which all parts of the parser are built."""

import re
from collections import defaultdict
from typing import NoReturn

from harness.ptxcpu.ptx.errors import PtxError
from harness.ptxcpu.ptx.lexer import IDENTIFIER, joined, number, tokens
from harness.ptxcpu.ptx.syntax import Integer, Program, Statement
from harness.ptxcpu.ptx.types import TYPES, Type

SPECIAL = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(?:\.[xyzw])?"
    r"|laneid|warpid|nwarpid|smid|nsmid|gridid|is_explicit_cluster|cluster_n?ctarank"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|pm[0-7](?:_64)?|envreg[0-9]+"
    r"|globaltimer(?:_lo|_hi)?|reserved_smem_offset_(?:begin|end|cap|[01])"
    r"|(?:total|aggr|dynamic)_smem_size|current_graph_exec)"
)


MAX_SAID = 200
"""The most characters of a token in a message: a token may be as long as the text."""


class TokenStream:
    """The tokens, the current position, and the program that is parsed from them."""

    def __init__(self, text: str) -> None:
        self.tokens = [*tokens(text), ""]
        self.at = 0
        self.line = self.caller = 0
        self.in_header = False
        self.calls = defaultdict[tuple[int, ...], dict[tuple[int, int], None]](dict)
        """The user's lines, and those of their callers, from which the code at a place of a header
        is called."""
        self.owner = ""
        self.program = Program()

    @property
    def next(self) -> str:
        """The next token; empty at the end."""
        return self.tokens[self.at]

    def take(self) -> str:
        word = self.tokens[self.at]
        if not word:
            self.fail("the PTX ends too early")
        self.at += 1
        return word

    def accept(self, word: str) -> bool:
        found = self.tokens[self.at] == word
        self.at += found
        return found

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(f"expected {word!r}, found {self.next!r}")

    def fail(self, reason: str) -> NoReturn:
        around = " ".join(self.tokens[max(0, self.at - 6) : self.at + 6])
        raise PtxError(reason[:MAX_SAID], around[:MAX_SAID], self.line)

    def finish(self, start: int, is_debugging: bool = False) -> None:
        """Add the tokens from `start` on to the canonical text as one statement."""
        self.add(tuple(self.tokens[start : self.at]), is_debugging)

    def add(self, found: tuple[str, ...], is_debugging: bool) -> None:
        self.program.statements.append(
            Statement(found, joined(found), self.owner, self.line, is_debugging)
        )

    def integer(self) -> int:
        """Parse a constant; sums and products of integers are allowed."""
        total = self.product()
        while self.next in ("+", "-"):
            total += self.product() if self.take() == "+" else -self.product()
        return total

    def product(self) -> int:
        result = self.signed_integer()
        while self.accept("*"):
            result *= self.signed_integer()
        return result

    def signed_integer(self) -> int:
        found = number(self.next)
        if isinstance(found, Integer):
            self.at += 1
            return found.value
        sign = -1 if self.accept("-") else 1
        found = number(self.take())
        if not isinstance(found, Integer):
            self.at -= 1
            self.fail(f"expected an integer, found {self.next!r}")
        return sign * found.value

    def natural(self) -> int:
        found = self.signed_integer()
        if found < 0:
            self.fail(f"expected a size, found {found}")
        return found

    def name(self) -> str:
        """Parse a name that the program declares."""
        word = self.take()
        if not IDENTIFIER.fullmatch(word):
            self.at -= 1
            self.fail(f"expected a name, found {word!r}")
        if SPECIAL.fullmatch(word):
            self.fail(f"{word} is a special register")
        self.program.names.add(word)
        return word

    def type(self) -> Type:
        name = self.take().removeprefix(".")
        if name not in TYPES:
            self.at -= 1
            self.fail(f"unknown PTX type .{name}")
        return TYPES[name]
