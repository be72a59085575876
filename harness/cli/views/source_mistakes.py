"""Mistakes that the source of a kernel shows by itself."""

import re
from itertools import islice
from typing import NamedTuple

from harness.compiling.lexical import without_comments, without_text
from harness.compiling.syntax import descendants, syntax_tree, text_of
from harness.protocol.report import Place
from problem.signature import SIGNATURE

_PARAMETERS = re.compile(r"\bmatrix_multiplication_kernel\s*\(([^)]*)\)")
_STATE = re.compile(
    r"^[ \t]*(?:static\s+)?__device__\s+(?:(?:volatile|unsigned|static)\s+)*\w+\s+(\w+)\s*"
    r"(?:\[[^\]]*\]\s*)*(?:=[^;]*)?;",
    re.MULTILINE,
)
_CONSTANT = re.compile(
    r"^[ \t]*(?:static\s+)?__constant__\s+(?:\w+\s+)+(\w+)\s*(?:\[[^\]]*\]\s*)*;", re.MULTILINE
)
_WITHOUT_VALUE = re.compile(r"^[ \t]*(?:float|double)\s+(\w+)\s*(?:\[[^\]]*\]\s*)*;", re.MULTILINE)
_CLASS = re.compile(r"\b(?:struct|class|union)\b[^;{}()]*\{")
_DYNAMIC_ARRAY = re.compile(r"\bextern\s+__shared__\b[^;]*?\b(\w+)\s*\[\s*\]")
_OTHER_NUMBERS = re.compile(r"threadIdx\b(?!\s*\.\s*x)|thread_rank|tid\.y")
_ONLY_WAITS = re.compile(r"(?:[\s;{}]|continue\b|__nanosleep\s*\(\w*\)|__threadfence\w*\s*\(\))*")
_VARIABLE_IN_MEMORY = re.compile(r"\b__(?:shared|device)__\b|&\s*$")
_POINTER = re.compile(r"\*\s*(?:const\s*)?(?:__restrict__\s*)?$")


def line_at(at: Place | None, source: str) -> str:
    """Return the text of the line; an empty one if it is unknown."""
    number = (at.line if at else None) or 0
    return dict(enumerate(source.splitlines(), 1)).get(number, "")


def order_of_matrices(source: str) -> str | None:
    """Say so if the kernel's first parameter seems to be the output."""
    found = _PARAMETERS.search(without_comments(source))
    parameters = found[1].split(",") if found is not None else []
    if len(parameters) < 3 or not ("const" in parameters[2] or _name(parameters[0]) in ("c", "C")):
        return None
    return "The first two parameters are the inputs A and B, and the third is the output C."


def _name(parameter: str) -> str:
    return "".join(parameter.rsplit(maxsplit=1)[-1:]).strip("*&")


class Names(NamedTuple):
    """The names of the kernel's parameters: the matrices, and their sizes."""

    left: str
    right: str
    output: str
    rows: str
    inner: str
    columns: str


def parameter_names(source: str) -> Names:
    """Return the names that the file gives the parameters; the problem's if it gives no six."""
    found = _PARAMETERS.search(without_comments(source))
    written = [] if found is None else [_name(each) for each in found[1].split(",")]
    is_named = all(name.isidentifier() for name in written)  # a declaration may have types only
    if is_named and len(written) == len({*written}) == 6:
        return Names._make(written)
    return Names._make((*SIGNATURE.inputs, SIGNATURE.output, *SIGNATURE.numbers))


def order_of_sizes(source: str) -> str | None:
    """Say so if the kernel takes its last parameter, the columns of B, for the columns of A."""
    code, names = without_comments(source), parameter_names(source)
    found = _PARAMETERS.search(code)
    if found is None:
        return None
    body = code[found.end() : _end_of_block(code, found.end())]
    strides = re.findall(rf"\b{re.escape(names.left)}\s*\[[^\]]*?\*\s*(\w+)", body)
    if names.columns not in strides or names.inner in strides:
        return None
    return (
        f"The kernel takes `{names.columns}`, its last parameter, for the columns of A. The judge "
        "passes the rows of A, the columns of A and the columns of B, in this order."
    )


def _end_of_block(code: str, start: int) -> int:
    """Return where the first block that opens from here on is closed."""
    depth = 0
    for brace in re.compile("[{}]").finditer(code, start):
        depth += 1 if brace[0] == "{" else -1
        if depth <= 0:
            return brace.end()
    return len(code)


def one_dimensional(source: str) -> str | None:
    """Say so if the kernel numbers its threads as if a block were a row of them."""
    if "threadIdx.x" not in source or _OTHER_NUMBERS.search(source):
        return None
    return (
        "A block has 16×16 threads: number the threads of a block by "
        "`threadIdx.y * 16 + threadIdx.x`."
    )


def two_dynamic_arrays(source: str) -> str | None:
    """Say so if the kernel uses two arrays in dynamic shared memory as if they were apart."""
    code = without_text(source)
    found = re.search(r"\bmatrix_multiplication_kernel\s*\(", code)
    if found is None:
        return None
    body = code[found.end() : _end_of_block(code, found.end())]
    names = dict.fromkeys(_DYNAMIC_ARRAY.findall(code))
    used = [name for name in names if re.search(rf"\b{name}\s*(?:\[[^\]]*[^\]\s]|[+,;])", body)]
    if len(used) < 2:
        return None
    return (
        f"All arrays that are `extern __shared__` begin at the same address: `{used[0]}` and "
        f"`{used[1]}` overlap. Declare one, and let a pointer to the second part begin behind the "
        "first."
    )


def sum_without_start(source: str) -> str | None:
    """Say so if the first statement that uses a variable adds to it. Members of a struct, which may
    have been set together, are not meant."""
    members = [
        range(each.start(), _end_of_block(source, each.start())) for each in _CLASS.finditer(source)
    ]
    for found in _WITHOUT_VALUE.finditer(source):
        name = found[1]
        if any(found.start() in inside for inside in members):
            continue
        first = re.compile(rf"(?<![\w.>]){name}\b\s*(?:\[[^\]]*\]\s*)*(\+=)?")
        use = first.search(source, found.end())
        if use is not None and use[1]:
            line = source.count("\n", 0, found.start(1)) + 1
            return f"`{name}` (line {line}) has no value before the first `+=`: start it with 0.0f."
    return None


class Polling(NamedTuple):
    """A loop that waits for a variable to change."""

    line: int
    name: str
    advice: str


def plain_polling(source: str) -> Polling | None:
    """Return the first loop that only reads a variable in memory which is neither volatile nor
    atomic."""
    code = without_text(source)
    for loop in descendants(syntax_tree(source.encode())):
        parts = [loop.child_by_field_name(each) for each in ("condition", "body")]
        if loop.type != "while_statement" or None in parts:
            continue
        condition, body = (without_text(text_of(each)) for each in parts if each is not None)
        is_call_or_assignment = re.search(r"\w\s*\(|(?<![=!<>])=(?!=)", condition)
        if is_call_or_assignment or not _ONLY_WAITS.fullmatch(body):
            continue
        names = re.findall(r"(?<![\w.])[a-zA-Z_]\w*", condition)
        declared = {name: _before_first_use(name, code) for name in names}
        if any(re.search(r"volatile|atomic", text) for text in declared.values()):
            continue
        for name, text in declared.items():
            is_loaded = re.search(rf"\*\s*{name}\b|\b{name}\s*\[", condition) is not None
            if _VARIABLE_IN_MEMORY.search(text) or (is_loaded and _POINTER.search(text)):
                line = loop.start_point[0] + 1
                return Polling(
                    line,
                    name,
                    f"The loop in line {line} waits for `{name}`, which the compiler may load only "
                    "once: declare it `volatile`, or read it by an atomic. Execute "
                    "`__threadfence();` before another thread sets it, and after the loop.",
                )
    return None


def _before_first_use(name: str, code: str) -> str:
    """Return the beginning of the statement, or of the parameters, in which a name is declared."""
    found = re.search(rf"\b{name}\b", code)
    return re.split(r"[;{}(]", code[: found.start()])[-1] if found is not None else ""


def of_state(source: str) -> str | None:
    if constants := _names(_CONSTANT, source):
        return f"Host code is never run, so this `__constant__` memory stays zero: {constants}."
    if variables := _names(_STATE, source):
        return (
            "Before each launch a `__device__` variable has its initial value again. Nothing is "
            f"kept from an earlier launch in {variables}."
        )
    return None


def _names(declaration: re.Pattern[str], source: str) -> str:
    """Return the first variables that are declared so, with their lines."""
    return ", ".join(
        f"`{found[1]}` (line {source.count(chr(10), 0, found.start(1)) + 1})"
        for found in islice(declaration.finditer(source), 3)
    )
