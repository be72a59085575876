"""The text of a source, before anything that it says is read.

What two readers could take differently is made the same for both: ends of lines, and the time.
"""

from __future__ import annotations

import re
import time

from harness.compiling.errors import SourceError

_WORDS = re.compile(
    r"""(?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<number>\b[0-9][0-9A-Za-z_.']*)
      | (?P<character>'(?:\\.|[^'\\\n])*')
      | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<name>[A-Za-z_]\w*)""",
    re.X | re.S | re.A,
)
"""What strings, numbers and comments are to a compiler; everything else is between them."""

_MOMENT = {
    "__DATE__": '"Jan  1 1970"',
    "__TIME__": '"00:00:00"',
    "__TIMESTAMP__": '"Thu Jan  1 00:00:00 1970"',
}
"""With the present time each compilation would make another kernel."""


def normalised(text: str) -> str:
    """One kind of line end, and nothing between a backslash and the end that it splices."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"\\[ \t\v\f]+\n", "\\\\\n", lines)


def comments(code: str) -> list[str]:
    """All comments, in order."""
    return [m[0].rstrip("\n") for m in _WORDS.finditer(code) if m.lastgroup == "comment"]


def at_a_fixed_time(code: str) -> str:
    """The code with `__DATE__`, `__TIME__` and `__TIMESTAMP__` standing for one moment, as in other
    reproducible builds: NVRTC lets nobody define them. Raises SourceError where their names are
    hidden by a splice."""
    spliced = code.replace("\\\n", "")
    for name in _MOMENT:
        if spliced.count(name) != code.count(name):
            raise SourceError(f"{name} is not allowed with a line splice in it")
    return _WORDS.sub(lambda m: _MOMENT.get(m[0], m[0]), code)


def may_hold_the_time(code: str) -> bool:
    """Whether a name could be left that `at_a_fixed_time` did not replace: made of parts, or in
    what it takes for a string or a comment."""
    return any(sign in code for sign in ("##", "%:%:", "??=", *_MOMENT))


def check_for_present_time(preprocessed: str, started: float) -> None:
    """Refuse a source whose preprocessed form holds the time of its compilation. Raises
    SourceError."""
    # The clock that C's time() reads, and the compiler with it, is behind by up to a few
    # milliseconds: it may still have been the second before.
    for second in range(int(started) - 1, int(time.time()) + 1):
        for clock in (time.localtime(second), time.gmtime(second)):
            date = f"{time.strftime('%b', clock)} {clock.tm_mday:2d} {clock.tm_year}"
            if date in preprocessed or time.strftime("%H:%M:%S", clock) in preprocessed:
                raise SourceError("the time of compilation is not allowed in a submission")
