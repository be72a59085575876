"""Tests of reading a source's words, and of keeping the time of compilation out of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from harness.compiling import lexical
from harness.compiling.errors import SourceError


def test_nothing_is_left_between_a_backslash_and_its_line_end() -> None:
    assert lexical.normalised("a\\ \t\r\nb\rc\n") == "a\\\nb\nc\n"


@pytest.mark.parametrize(
    ("code", "comments"),
    [
        ("int a; // X  \nint b;", ["// X  "]),
        ("// spliced\\\nhere\n/* and\nX */", ["// spliced\\\nhere", "/* and\nX */"]),
        ("// at the end\\\n", ["// at the end\\"]),
        ('"// none"', []),
        ("int a; // X", ["// X"]),
    ],
)
def test_comments_are_found_whole(code: str, comments: list[str]) -> None:
    assert lexical.comments(code) == comments


@pytest.mark.parametrize(
    ("code", "line", "end"),
    [
        ("int a;\n/* never closed\nint b;", 2, "*/"),
        ("/*/", 1, "*/"),
        ('\n\nauto s = R"x(never closed)";', 3, ')x"'),
    ],
)
def test_what_is_never_closed_is_refused_with_its_line(code: str, line: int, end: str) -> None:
    with pytest.raises(SourceError, match="never closed") as error:
        lexical.comments(code)
    assert error.value.diagnostic.line == line and f"`{end}`" in str(error.value)


@pytest.mark.parametrize("word", ['R"x(', 'R"(', "/* \n", '"\\', "'\\", "'", "/", '\\"'])
def test_reading_words_takes_time_linear_in_the_length(word: str) -> None:
    started = time.process_time()
    with contextlib.suppress(SourceError):
        lexical.comments(word * (1_000_000 // len(word)))
    assert time.process_time() - started < 5


@pytest.mark.parametrize("sign", ["##", "%:%:", "??=", "__DATE__", "__TIME__", "__TIMESTAMP__"])
def test_each_sign_of_a_hidden_name_is_seen(sign: str) -> None:
    assert lexical.may_hold_the_time(f"a {sign} b") and not lexical.may_hold_the_time("# %: ??")


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A clock that stands, at midnight in London and five o'clock here."""
    monkeypatch.setenv("TZ", "EAST-5")
    time.tzset()
    monkeypatch.setattr(lexical.time, "time", lambda: 172_800.0)
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
@pytest.mark.parametrize(
    "said",
    ["00:00:00", "05:00:00", "23:59:59", "04:59:59", "23:59:58", "Jan  3 1970", "Jan  2 1970"],
)
def test_the_time_since_the_beginning_is_refused_here_and_in_london(said: str) -> None:
    """And the second before it, which C's time() tells for a few milliseconds more."""
    with pytest.raises(SourceError, match="time of compilation"):
        lexical.check_for_present_time(f'"{said}"', 172_799.5)


@pytest.mark.usefixtures("far_east")
@pytest.mark.parametrize("said", ["00:00:01", "05:00:01", "23:59:57", "Jan  4 1970", "Jan 03 1970"])
def test_any_other_time_is_none(said: str) -> None:
    lexical.check_for_present_time(f'"{said}"', 172_799.5)
