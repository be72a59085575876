"""Every way to ask for a header, and what only looks like one."""

from __future__ import annotations

import pytest

from harness.compiling.errors import SourceError
from harness.compiling.includes import Include, includes


def asked(text: str) -> list[tuple[str, int]]:
    return [(include.header, include.line) for include in includes(text.encode())]


def refused(text: str) -> tuple[str, int | None]:
    with pytest.raises(SourceError) as error:
        includes(text.encode())
    return str(error.value), error.value.diagnostic.line


LITERALLY = "an #include must name its header literally, between < > or quotes"


@pytest.mark.parametrize(
    "line",
    [
        '#include "a.h"',
        "#include <a.h>",
        '  #  include/**/"a.h" // and why',
        '#import "a.h"',
        '#include_next "a.h"',
        '??=include "a.h"',
        '/* x */ %: /* y */ include "a.h"',
        '#if __has_include("a.h")',
        "#elif __has_include_next( <a.h>)",
        '#if defined(X) && __has_include/**/( "a.h")',
        'int x = __has_include "a.h";',
    ],
)
def test_a_header_is_asked_for(line: str) -> None:
    assert asked(f"\n{line}\n") == [("a.h", 2)]


def test_each_is_found_with_its_line() -> None:
    text = '#include "a"\n\n#include <b/c>\n#if __has_include("d")\n#endif\n#include "e"'
    assert asked(text) == [("a", 1), ("b/c", 3), ("e", 6), ("d", 4)]
    assert includes(b"") == ()
    assert includes('#include "\xff"'.encode("latin-1")) == (Include("\ufffd", 1),)


@pytest.mark.parametrize(
    "line",
    [
        "#ifdef __has_include",
        "#ifndef __has_include",
        "%:ifdef __has_include",
        "#if defined(__has_include)",
        "#if defined __has_include",
        "#if defined ( __has_include )",
        "// __has_include tells whether",
        "  // whether __has_embed is there",
    ],
)
def test_a_query_that_is_only_named_asks_for_nothing(line: str) -> None:
    assert asked(f"int a;\n{line}\n") == asked(f"int a;\nint b;\n{line}\n") == []
    assert asked(f'{line}\n#if __has_include("a.h")\n') == [("a.h", 2)]


@pytest.mark.parametrize(
    "line",
    [
        "#define ASK __has_include",
        "int x = __has_include;",
        "#if defined(__has_include(A))",
        "#if __has_include(A)",
        "#ifdef A __has_include",
        "// */ __has_include",
        "x // __has_include",
        "#include A",
        '#include"',
        "#include",
    ],
)
def test_a_request_that_does_not_name_its_header_is_refused(line: str) -> None:
    assert refused(f"int a;\n{line}\n") == (LITERALLY, 2)


def test_a_query_is_looked_at_as_far_back_as_a_line_goes() -> None:
    room = 1000 - len("//")
    assert asked("//" + "x" * room + "__has_include") == []
    assert asked("int a;\n//" + "x" * (room - 1) + "__has_include") == []
    assert refused("//" + "x" * (room + 1) + "__has_include")[0] == LITERALLY
    assert refused("int a;\n//" + "x" * room + "__has_include")[0] == LITERALLY
    assert refused("a//" + "x" * room + "__has_include")[0] == LITERALLY


def test_a_file_cannot_be_embedded() -> None:
    said = ("#embed is not allowed in a submission", 3)
    assert refused('\n\n#embed "/etc/passwd"\n') == said
    assert asked('#include "embed"\n') == [("embed", 1)]


@pytest.mark.parametrize("paste", ["##", "%:%:", "??=??="])
def test_a_macro_that_pastes_cannot_stand_in_a_condition(paste: str) -> None:
    text = f'#define P(a, b) a {paste} b\n#define Q P\n\n#if Q(__has_inc, lude)("/etc/passwd")\n'
    assert refused(text) == ("a macro that pastes tokens cannot stand in an #if", 4)
    assert refused(text.replace("#if", "#elif"))[1] == 4
    assert refused("\n" + text)[1] == 5
    assert refused(text.replace("Q(", "P("))[1] == 4
    assert asked(text.replace("#if", "//if")) == []
    assert asked(text.replace("Q(", "R(").replace('("/etc/passwd")', "")) == []


def test_a_macro_that_pastes_may_stand_elsewhere() -> None:
    assert asked("#define P(a, b) a##b\nint P(x, y);\n#if X\n#endif\n") == []
