"""The words of a source file, as a C++ compiler divides it into strings, comments and names.

One regular expression reads the file once. Its time is linear in the length of the file: a word
that has no end takes the rest of its line or of the file.
"""

import re
import time
from collections.abc import Collection, Iterator

from harness.compiling.errors import SourceError
from harness.protocol.report import Diagnostic

_WORD = re.compile(
    r"""(?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\((?:.*?\)(?P=mark)"|.*))
      | (?P<string>"(?:\\.|[^"\\\n])*+"?)
      | (?P<number>\b[0-9][0-9A-Za-z_.']*)
      | (?P<character>'(?:\\.|[^'\\\n])*+'?)
      | (?P<comment>//(?:\\\n|[^\n])*|/\*(?:.*?\*/|.*))
      | (?P<name>[A-Za-z_]\w*)""",
    re.X | re.S | re.A,
)

_FIXED_TIME = {
    "__DATE__": '"Jan  1 1970"',
    "__TIME__": '"00:00:00"',
    "__TIMESTAMP__": '"Thu Jan  1 00:00:00 1970"',
}
"""With the present time, each compilation would make another kernel."""


def normalised(text: str) -> str:
    """Return the text without a byte order mark and DOS's end of file, and with one kind of line
    end. No white space is left between a backslash and the line end that it splices."""
    lines = text.removeprefix("\ufeff").rstrip("\x1a").replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"\\[ \t\v\f]+\n", "\\\\\n", lines)


_SPECIFIER = re.compile(
    r"__attribute__[ \t]*\([ \t]*\([ \t]*(?:{0}|__{0}__)[ \t]*\)[ \t]*\)"
    r"|__location__[ \t]*\([ \t]*{0}[ \t]*\)".format("(global|device|host|shared|constant)")
)
_MACRO_OF_NVCC = {"__NVCC__": "__nvcc__"}
"""nvcc's macro, which the compiler's own headers must not see, and one that prelude.h defines."""


def in_words_of_nvrtc(code: str) -> str:
    """Return the code with CUDA's specifiers in place of their attributes, and with a macro in
    place of nvcc's. Lengths stay, so that positions do, too."""

    def specifier(match: re.Match[str]) -> str:
        return f"__{next(filter(None, match.groups()))}__".ljust(len(match[0]))

    code = _SPECIFIER.sub(specifier, code)
    if not any(name in code for name in _MACRO_OF_NVCC):
        return code
    return _WORD.sub(lambda match: _MACRO_OF_NVCC.get(match[0], match[0]), code)


def comments(code: str) -> Iterator[re.Match[str]]:
    """Yield all comments, in order."""
    return (match for match in _WORD.finditer(code) if match.lastgroup == "comment")


def without_comments(code: str) -> str:
    """Return the code with a space in place of each comment."""
    return _WORD.sub(lambda match: " " if match.lastgroup == "comment" else match[0], code)


def without_text(code: str) -> str:
    """Return the code with blanks in place of comments, strings and characters."""

    def blank(match: re.Match[str]) -> str:
        is_code = match.lastgroup in ("name", "number")
        return match[0] if is_code else re.sub(r"[^\n]", " ", match[0])

    return _WORD.sub(blank, code)


def names(wanted: Collection[str], code: str) -> bool:
    """Return whether the code has one of these names outside of comments and strings."""
    return bool(wanted) and not {*re.findall(r"\w+", without_text(code))}.isdisjoint(wanted)


_OTHER_LANGUAGES = {
    r"^[ ]{0,3}```": "Markdown, not CUDA; keep only the code between the two lines of ```",
    r"^(import [\w., ]+$|from [\w.]+ import )": "Python, not CUDA; keep only the kernel's code",
}


def other_language(code: str) -> Diagnostic | None:
    """Return an error for a file that does not compile because it is in another language."""
    for pattern, message in _OTHER_LANGUAGES.items():
        if found := re.search(pattern, code, re.MULTILINE):
            line = code.count("\n", 0, found.start()) + 1
            return Diagnostic(severity="error", message=f"this is {message}", line=line)
    return None


def at_a_fixed_time(code: str) -> str:
    """Return the code with `__DATE__`, `__TIME__` and `__TIMESTAMP__` replaced by one fixed moment,
    because NVRTC does not let anyone define them. Raises SourceError if a line splice hides one."""
    spliced = code.replace("\\\n", "")
    for name in _FIXED_TIME:
        if spliced.count(name) != code.count(name):
            raise SourceError(f"{name} is not allowed with a line splice in it")
    return _WORD.sub(lambda match: _FIXED_TIME.get(match[0], match[0]), code)


def may_hold_the_time(code: str) -> bool:
    """Return whether `at_a_fixed_time` could have missed a name, because tokens are pasted or the
    name seems to be part of a string or a comment."""
    return any(sign in code for sign in ("##", "%:%:", "??=", *_FIXED_TIME))


def check_for_present_time(preprocessed: str, started: float) -> None:
    """Raise SourceError if the preprocessed source holds the time of its compilation."""
    # The clock behind C's time() is late by up to a few milliseconds, so the second before counts.
    for second in range(int(started) - 1, int(time.time()) + 1):
        for clock in (time.localtime(second), time.gmtime(second)):
            date = f"{time.strftime('%b', clock)} {clock.tm_mday:2d} {clock.tm_year}"
            if date in preprocessed or time.strftime("%H:%M:%S", clock) in preprocessed:
                raise SourceError("the time of compilation is not allowed in a submission")
