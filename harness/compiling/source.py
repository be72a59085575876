"""What a CUDA source says: its launch line, its kernel's parameters, host code, headers.

Everything is found with tree-sitter's CUDA grammar; text is only ever blanked, never moved, so the
line numbers of the user's file stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import Any

from tree_sitter import Node

from harness.compiling import text as source_text
from harness.compiling.errors import SourceError
from harness.compiling.host_code import (
    blanked,
    functions,
    host_functions,
    with_constants_for_both,
)
from harness.compiling.includes import Include, includes
from harness.compiling.own_launch import launch_warnings, launched_instance
from harness.compiling.signature import KERNEL_NAME, SIGNATURE
from harness.compiling.syntax import Walked, leaves, position, text_of, walked
from harness.protocol.report import Diagnostic
from problem.launcher import LaunchLine

_PARAMETER_TYPES = ("float*", "float*", "float*", "int", "int", "int")


@dataclass(frozen=True, slots=True)
class Source:
    """What a source file says.

    device_code: the file with host functions blanked out, line for line.
    code_sha256: of the words of the code, without comments and white space, and the launch line:
        it tells whether a report is of this file. What a kernel is, its PTX says.
    code_lines: the lines of the file that these words begin on.
    """

    device_code: str
    code_sha256: str
    code_lines: tuple[int, ...]
    launch: LaunchLine
    includes: tuple[Include, ...]
    warnings: tuple[Diagnostic, ...]
    template_line: int | None
    """Where the kernel is defined, if it is a template."""
    instance: str | None
    """Of that template: what the file's own host code launches."""
    host_lines: dict[str, int]
    """Where functions of the host are defined, by their names."""


def parse(text: str) -> Source:
    """Read CUDA source. Raises SourceError where it cannot be a submission."""
    code = source_text.normalised(text).encode()
    tree = walked(code)
    hosts = host_functions(tree)
    kernels = [f for f in functions(tree.root) if _name_of(f) == KERNEL_NAME and f not in hosts]
    _check_signature(kernels)
    launch, near_misses = _launch_line(tree)
    device_code = blanked(code, hosts)
    if hosts:
        tree = walked(device_code)
    words = tree.leaves
    template_line = next(map(_template_line, kernels), None)
    instance = launched_instance(hosts) if template_line is not None else None
    compiled = with_constants_for_both(device_code, tree).decode()
    return Source(
        device_code=source_text.at_a_fixed_time(compiled),
        code_sha256=_fingerprint(words, device_code, launch, instance),
        code_lines=tuple(sorted({position(leaf)[0] for leaf in words if leaf.type != "comment"})),
        launch=launch,
        includes=includes(code),
        warnings=(*near_misses, *launch_warnings(hosts, launch)),
        template_line=template_line,
        instance=instance,
        host_lines={_name_of(host): position(host)[0] for host in hosts},
    )


# ------------------------------------------------------------------------------------ signature


def _declarators(function: Node) -> Iterator[Node]:
    """A definition, and what it declares: from the outermost, like a pointer, to the name."""
    inner: Node | None = function
    while inner is not None:
        yield inner
        inner = inner.child_by_field_name("declarator")


def _name_of(function: Node) -> str:
    *_, name = _declarators(function)
    return text_of(name)


def _template_line(kernel: Node) -> int | None:
    is_template = kernel.parent is not None and kernel.parent.type == "template_declaration"
    return position(kernel)[0] if is_template else None


def _check_signature(kernels: list[Node]) -> None:
    """Where the definition of the kernel can be read, its parameters must be the problem's."""
    for declarator in chain.from_iterable(map(_declarators, kernels)):
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


# ------------------------------------------------------------------------------------- identity


def _fingerprint(
    tree: tuple[Node, ...], device_code: bytes, launch: LaunchLine, instance: str | None
) -> str:
    words = [text_of(leaf) for leaf in tree if leaf.type != "comment"]
    comments = [text_of(leaf) for leaf in tree if leaf.type == "comment"]
    if comments != source_text.comments(device_code.decode()):
        # The grammar takes something for a comment that is code, or the other way round.
        words += ["comments", *comments]
    if instance is not None:
        words += ["instance", instance]
    return sha256("\n".join([repr(launch), *words]).encode()).hexdigest()


# ---------------------------------------------------------------------------------- launch line


_LAUNCH_LINE = "// solve:"
_NEAR_MISS = re.compile(r"^[/*!\s]*solve\s*(?::|\s(?:tile|shared_memory)\s*=)", re.IGNORECASE)
"""A line of a comment that resembles a launch line."""


def _launch_line(tree: Walked) -> tuple[LaunchLine, list[Diagnostic]]:
    """Return the file's launch line, and a warning for each comment that only resembles one."""
    found: LaunchLine | None = None
    warnings: list[Diagnostic] = []
    for node in tree.nodes:
        if node.type != "comment":
            continue
        text = text_of(node)
        line, column = position(node)
        if not text.startswith(_LAUNCH_LINE):
            warnings += _near_misses(text, line)
        elif found is not None:
            raise SourceError("a second launch line; a submission has at most one", line, column)
        else:
            found = parse_launch_line(text.removeprefix(_LAUNCH_LINE), line, column)
    return found or LaunchLine(), warnings


def _near_misses(comment: str, line: int) -> Iterator[Diagnostic]:
    for number, text in enumerate(comment.split("\n"), line):
        if _NEAR_MISS.match(text):
            message = (
                "this comment is not a launch line and has no effect; a launch line is written "
                f"exactly like this: `{_LAUNCH_LINE} tile=32x64 shared_memory=8192`"
            )
            yield Diagnostic(severity="warning", message=message, line=number)


def parse_launch_line(words: str, line: int | None = None, column: int | None = None) -> LaunchLine:
    """`tile=ROWSxCOLS shared_memory=BYTES`, both optional. Raises SourceError."""
    values: dict[str, Any] = {}

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
        return replace(LaunchLine(), **values)
    except ValueError as error:
        raise refuse(str(error)) from None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 12
