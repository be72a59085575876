"""Parses CUDA source: the launch line, host code to set aside, headers it asks for, its own launch.

Everything is found with tree-sitter's CUDA grammar; text is only ever blanked, never moved, so the
line numbers of the user's file stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from tree_sitter import Node

from harness.compiling.syntax import descendants, leaves, position, syntax_tree, text_of
from harness.report import Diagnostic
from problem.launcher import BLOCK, LaunchLine

KERNEL_NAME = "matrix_multiplication_kernel"
SIGNATURE = "const float* A, const float* B, float* C, int M, int N, int K"

_PARAMETER_TYPES = ("float*", "float*", "float*", "int", "int", "int")
_DEVICE_WORDS = {"__global__", "__device__", "constexpr", "consteval"}


class SourceError(Exception):
    """The source cannot be a submission; says where and what to do."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(severity="error", message=message, line=line, column=column)


@dataclass(frozen=True, slots=True)
class Include:
    """One #include: the header as written between its quotes or brackets, and its line."""

    header: str
    line: int


@dataclass(frozen=True, slots=True)
class Source:
    """What a source file says.

    device_code: the file with host functions blanked out, line for line.
    code_sha256: of the words of the code, without comments and white space, and the launch line:
        two files with the same are the same kernel.
    """

    device_code: str
    code_sha256: str
    launch: LaunchLine
    includes: tuple[Include, ...]
    warnings: tuple[Diagnostic, ...]


def parse(text: str) -> Source:
    """Read CUDA source. Raises SourceError where it cannot be a submission."""
    code = text.encode()
    root = syntax_tree(code)
    functions = list(_functions(root))
    hosts = [function for function in functions if _is_host(function)]
    _check_signature([function for function in functions if not _is_host(function)])
    launch = _launch_line(root)
    device_code = _blank(code, hosts)
    return Source(
        device_code=device_code.decode(),
        code_sha256=_fingerprint(device_code, launch),
        launch=launch,
        includes=_includes(code),
        warnings=tuple(_launch_warnings(root, hosts)),
    )


# ------------------------------------------------------------------------------------ functions


def _functions(root: Node) -> Iterator[Node]:
    """Definitions of free functions; those inside classes belong to their class."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "function_definition":
            yield node
        elif node.type not in ("class_specifier", "struct_specifier", "union_specifier"):
            stack.extend(reversed(node.children))


def _is_host(function: Node) -> bool:
    body = function.child_by_field_name("body")
    end = body.start_byte if body else function.end_byte
    words = {text_of(node) for node in leaves(function) if node.end_byte <= end}
    return not words & _DEVICE_WORDS


def _check_signature(functions: list[Node]) -> None:
    """Where the definition of the kernel can be read, its parameters must be the problem's."""
    for function in functions:
        declarator = function.child_by_field_name("declarator")
        name = declarator.child_by_field_name("declarator") if declarator else None
        if declarator is None or name is None or text_of(name) != KERNEL_NAME:
            continue
        parameters = declarator.child_by_field_name("parameters")
        if parameters is None or parameters.has_error:
            continue
        types = tuple(
            _parameter_type(child)
            for child in parameters.named_children
            if child.type == "parameter_declaration"
        )
        if any("[" in kind or kind not in _KNOWN_TYPES for kind in types):
            continue  # a typedef or a macro: the compiled kernel's parameters are checked as well
        if types != _PARAMETER_TYPES:
            line, column = position(parameters)
            raise SourceError(
                f"{KERNEL_NAME} takes ({', '.join(types)}); it must take ({SIGNATURE})",
                line,
                column,
            )


_KNOWN_TYPES = {
    base + stars
    for base in ("float", "double", "int", "unsigned", "char", "short", "long", "void", "size_t")
    for stars in ("", "*", "**")
}


def _parameter_type(parameter: Node) -> str:
    base = parameter.child_by_field_name("type")
    stars = sum(1 for leaf in leaves(parameter) if leaf.type in ("*", "["))
    return (text_of(base) if base else "?") + "*" * stars


def _blank(code: bytes, nodes: list[Node]) -> bytes:
    """Overwrite nodes with spaces, keeping every line break."""
    blanked = bytearray(code)
    for node in nodes:
        for i in range(node.start_byte, node.end_byte):
            if blanked[i] not in b"\r\n":
                blanked[i] = 0x20
        if node.parent is not None and node.parent.type in (
            "linkage_specification",
            "template_declaration",
        ):
            # `extern "C"` or `template <…>` must not be left in front of nothing.
            blanked[node.start_byte : node.start_byte + 1] = b";"
            if node.parent.type == "template_declaration":
                for i in range(node.parent.start_byte, node.start_byte):
                    if blanked[i] not in b"\r\n":
                        blanked[i] = 0x20
    return bytes(blanked)


def _fingerprint(device_code: bytes, launch: LaunchLine) -> str:
    words = [text_of(leaf) for leaf in leaves(syntax_tree(device_code)) if leaf.type != "comment"]
    return sha256("\n".join([repr(launch), *words]).encode()).hexdigest()


# ---------------------------------------------------------------------------------- launch line


def _launch_line(root: Node) -> LaunchLine:
    found: LaunchLine | None = None
    for node in descendants(root):
        if node.type != "comment" or not text_of(node).startswith("//"):
            continue
        text = text_of(node)[2:]
        if not text.strip().startswith("solve:"):
            continue
        line, column = position(node)
        if found is not None:
            raise SourceError("a second launch line; a submission has at most one", line, column)
        found = parse_launch_line(text.strip().removeprefix("solve:"), line, column)
    return found or LaunchLine()


def parse_launch_line(words: str, line: int | None = None, column: int | None = None) -> LaunchLine:
    """`tile=ROWSxCOLS shared_memory=BYTES`, both optional. Raises SourceError."""
    values: dict[str, int] = {}

    def refuse(problem: str) -> SourceError:
        return SourceError(
            f"launch line: {problem}; write for example "
            "`// solve: tile=128x256 shared_memory=74496`",
            line,
            column,
        )

    for word in words.split():
        key, _, value = word.partition("=")
        shown = word if len(word) <= 40 else word[:37] + "..."
        if key not in ("tile", "shared_memory"):
            raise refuse(f"unknown word `{shown}`")
        if key in values or (key == "tile" and "tile_rows" in values):
            raise refuse(f"`{key}` is given twice")
        if key == "tile":
            rows, cross, columns = value.partition("x")
            if not (cross and _is_number(rows) and _is_number(columns)):
                raise refuse(f"`{shown}` is not tile=ROWSxCOLS")
            values["tile_rows"], values["tile_columns"] = int(rows), int(columns)
        elif _is_number(value):
            values["shared_memory"] = int(value)
        else:
            raise refuse(f"`{shown}` is not shared_memory=BYTES")
    try:
        return LaunchLine(**values)
    except ValueError as error:
        raise refuse(str(error)) from None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 12


# ------------------------------------------------------------------------------------- includes

_GAP = rb"(?:[ \t\v\f\r]|/\*(?:[^*]|\*(?!/))*+\*/)*+"
"""What the preprocessor takes for a space; possessive, so that no file can make it slow."""

_DIRECTIVE = re.compile(
    rb"^" + _GAP + rb"(?:#|%:|\?\?=)" + _GAP + rb"(include_next|include|import|embed)\b" + _GAP,
    re.MULTILINE,
)
_QUERY = re.compile(rb"__has_(?:include|include_next|embed)\b" + _GAP + rb"(\(?)" + _GAP)
_ASKS_NOTHING = re.compile(
    rb"(?:\bdefined[ \t]*\(?[ \t]*|^[ \t]*(?:#|%:)[ \t]*ifn?def[ \t]+|^[ \t]*//(?:(?!\*/).)*)\Z"
)
"""What may stand before a query without parentheses; elsewhere it would give it another name."""
_HEADER = re.compile(rb'<([^>\n]+)>|"([^"\n]+)"')


def _includes(code: bytes) -> tuple[Include, ...]:
    """Every header that the preprocessor could be asked for, wherever the request stands.

    This is where a stranger would try to read the judge's files, so it must see at least what the
    preprocessor sees: it works on the text before comments and conditions are understood, and a
    request that does not name its header literally is refused.
    """
    spliced = re.sub(rb"\\[ \t]*\r?\n", lambda match: b"", code)
    # Splicing loses lines; count them by the original text up to the same header name.
    found: list[Include] = []
    for pattern in (_DIRECTIVE, _QUERY):
        for match in pattern.finditer(spliced):
            line = spliced.count(b"\n", 0, match.end()) + 1
            if match.re is _DIRECTIVE and match[1] == b"embed":
                raise SourceError("#embed is not allowed in a submission", line)
            header = _HEADER.match(spliced, match.end())
            if header is None:
                before = spliced[spliced.rfind(b"\n", 0, match.start()) + 1 : match.start()]
                if match.re is _QUERY and not match[1] and _ASKS_NOTHING.search(before):
                    continue
                raise SourceError(
                    "an #include must name its header literally, between < > or quotes", line
                )
            name = (header[1] or header[2]).decode(errors="replace")
            found.append(Include(name, line))
    return tuple(found)


# ------------------------------------------------------------------------------- its own launch


def _launch_warnings(root: Node, hosts: list[Node]) -> Iterator[Diagnostic]:
    """Say where the file's own host code would launch something else than the rules do."""
    for host in hosts:
        for call in (node for node in descendants(host) if node.type == "kernel_call_syntax"):
            line, column = position(call)
            kernel = text_of(call.parent.children[0]) if call.parent else "?"
            if kernel.partition("<")[0] != KERNEL_NAME:
                message = f"the file's own host code also launches `{kernel}`; the judge does not"
            else:
                block = _block_of(call, host)
                if block == BLOCK[: len(block)] if block else False:
                    continue
                shown = "×".join(map(str, block)) if block else "other"
                message = (
                    f"the file's own host code launches blocks of {shown} threads; "
                    "the judge launches 16×16"
                )
                if block is None:
                    message = (
                        "cannot read the block size of the file's own launch; "
                        "the judge launches 16×16"
                    )
            yield Diagnostic(severity="warning", message=message, line=line, column=column)


def _block_of(call: Node, host: Node) -> tuple[int, ...] | None:
    """The block of a <<<grid, block>>> whose sizes are written as numbers."""
    arguments = call.named_children
    if len(arguments) < 2:
        return None
    block = arguments[1]
    if block.type == "identifier":
        # `dim3 block(TILE, TILE);` reads like the declaration of a function.
        declared = [
            node
            for node in descendants(host)
            if node.type in ("init_declarator", "function_declarator")
            and node.children
            and text_of(node.children[0]) == text_of(block)
        ]
        if len(declared) != 1:
            return None
        block = declared[0]
    names = _constants(host)
    lists = [
        node
        for node in descendants(block)
        if node.type in ("argument_list", "initializer_list", "parameter_list")
    ]
    values = lists[0].named_children if lists else [block]
    sizes = [_number(text_of(value), names) for value in values]
    if any(size is None for size in sizes):
        return None
    return tuple(size for size in sizes if size is not None) + (1,) * (2 - len(sizes))


def _constants(node: Node) -> dict[str, str]:
    """Names that the file gives to numbers: #define and initialised declarations."""
    root = node
    while root.parent is not None:
        root = root.parent
    names: dict[str, str] = {}
    for child in descendants(root):
        if child.type == "preproc_def":
            name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
            if name and value:
                names[text_of(name)] = text_of(value).strip()
        elif child.type == "init_declarator" and len(child.named_children) == 2:
            names[text_of(child.named_children[0])] = text_of(child.named_children[1])
    return names


def _number(text: str, names: dict[str, str], depth: int = 0) -> int | None:
    text = text.strip("() \t")
    if _is_number(text):
        return int(text)
    if text in names and depth < 4:
        return _number(names[text], names, depth + 1)
    return None
