"""A submission's source text, read with tree-sitter's CUDA grammar before it is compiled.

Text is only replaced by blanks or words of its line, so that line numbers stay those of the user's
file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from tree_sitter import Node

from harness.compiling import lexical
from harness.compiling.errors import SourceError
from harness.compiling.headers import Include, includes
from harness.compiling.host_code import blanked, functions, macros_for, with_constants_for_both
from harness.compiling.host_launch import HostCode, block_warning, instance_expressions
from harness.compiling.statement_expressions import as_lambdas
from harness.compiling.syntax import (
    Walked,
    declared_name,
    leaves,
    parts,
    path_to,
    position,
    text_of,
    walked,
)
from harness.protocol.report import Diagnostic
from problem.launcher import LaunchLine
from problem.signature import SIGNATURE, Signature


@dataclass(frozen=True, slots=True)
class Source:
    """The contents of a source file.

    signature: what the kernel must be.
    device_code: the file with host functions blanked out, line for line.
    parameters: the first kernel's parameters as written, and their line.
    template_line: the line of the kernel's definition if the kernel is a template.
    template_example: an explicit instantiation that the template could have.
    kernel_templates: the names of all kernels that are templates.
    instances: expressions for the instance of that template, in the order to try them.
    instances_used: the template arguments that the file's host code uses the kernel with.
    host_lines: the lines on which host functions are defined, by name.
    host_names: all names in host functions.
    """

    signature: Signature
    device_code: str
    launch: LaunchLine
    includes: tuple[Include, ...]
    warnings: tuple[Diagnostic, ...]
    parameters: tuple[str, int] | None
    template_line: int | None
    template_example: str
    kernel_templates: tuple[str, ...]
    instances: tuple[str, ...]
    instances_used: tuple[str, ...]
    host_lines: dict[str, int]
    host_names: frozenset[str]


def parse(text: str, signature: Signature = SIGNATURE) -> Source:
    """Read CUDA source. Raises SourceError if it cannot be a submission."""
    text = lexical.in_words_of_nvrtc(lexical.normalised(text))
    code = text.encode()
    tree = walked(code)
    found = functions(tree)
    defined = [node for node in tree.nodes if node.type == "function_definition"]
    hosts = {host.id for host in found.host}
    kernels = [f for f in defined if declared_name(f) == signature.kernel and f.id not in hosts]
    _check_signature(kernels, signature)
    launch, near_misses = _launch_line(tree)
    host_code = HostCode(tree, found.device, signature)
    templates = [kernel for kernel in kernels if _is_template(kernel)]
    instances = (
        instance_expressions(_qualified(tree, templates[0], signature), host_code)
        if templates
        else ()
    )
    device_code = blanked(with_constants_for_both(code, found), found.host).decode()
    leaving = {"return", "goto"} | macros_for({"return", "goto"}, tree)
    return Source(
        signature=signature,
        device_code=as_lambdas(lexical.at_a_fixed_time(device_code), leaving),
        launch=launch,
        includes=includes(code),
        warnings=(*near_misses, *block_warning(host_code)),
        parameters=next(map(_written_parameters, kernels), None),
        template_line=position(templates[0])[0] if templates else None,
        template_example=_example(templates[0], signature) if templates else "",
        kernel_templates=tuple(
            declared_name(f)
            for f in defined
            if _is_template(f) and "__global__" in text_of(f).partition("{")[0]
        ),
        instances=instances,
        instances_used=host_code.instances,
        host_lines={declared_name(host): position(host)[0] for host in found.host},
        host_names=frozenset(text_of(leaf) for host in found.host for leaf in leaves(host)),
    )


# ------------------------------------------------------------------------------------ signature


def _is_template(kernel: Node) -> bool:
    """Return whether a kernel is a template, also by `auto` as the type of a parameter."""
    if kernel.parent is not None and kernel.parent.type == "template_declaration":
        return True
    parameters = _parameters(kernel)
    types = [each.child_by_field_name("type") for each in parameters.children] if parameters else []
    return any(each is not None and text_of(each) == "auto" for each in types)


def _example(kernel: Node, signature: Signature) -> str:
    """Return an explicit instantiation of a kernel's template: of floats for the matrices, integers
    for the sizes, and 16 for a value."""
    parameters = _parameters(kernel)
    written = [each for each in parts(parameters) if each.type in _VALUES] if parameters else []
    bases = [each.child_by_field_name("type") for each in written]
    meant = {
        text_of(base): kind.strip("*")
        for base, kind in zip(bases, signature.types, strict=False)
        if base is not None
    }
    listed = kernel.parent.child_by_field_name("parameters") if kernel.parent else None
    arguments: dict[str, str] = {}
    for each in parts(listed) if listed else []:
        name = declared_name(each)
        arguments[name] = "16" if each.type in _VALUES else meant.get(name, "float")
    chosen = arguments | {"auto": "float"}
    types = ", ".join(_instance_type(each, chosen) for each in written)
    given = ", ".join(arguments.values())
    return f"template __global__ void {signature.kernel}<{given}>({types});"


def _instance_type(parameter: Node, arguments: dict[str, str]) -> str:
    """Return the type of a parameter in an explicit instantiation."""
    base, stars, _ = re.split(r"(\*+|$)", _parameter_type(parameter), maxsplit=1)
    is_const = bool(stars) and "const" in re.findall(r"\w+", text_of(parameter).partition("*")[0])
    return f"{'const ' if is_const else ''}{arguments.get(base, base)}{stars}"


_VALUES = {"parameter_declaration", "optional_parameter_declaration"}


def _parameters(function: Node) -> Node | None:
    """Return the list of a function's parameters."""
    lists = (each.child_by_field_name("parameters") for each in _declarators(function))
    return next(filter(None, lists), None)


def _written_parameters(kernel: Node) -> tuple[str, int] | None:
    parameters = _parameters(kernel)
    if parameters is None:
        return None
    return " ".join(text_of(parameters).split()), position(parameters)[0]


def _qualified(tree: Walked, kernel: Node, signature: Signature) -> str:
    """Return the name of a kernel with the namespaces that it stands in."""
    around = path_to(tree.root, kernel.start_byte, kernel.end_byte)
    names = [declared_name(node) for node in around if node.type == "namespace_definition"]
    return "::".join([*filter(None, names), signature.kernel])


def _declarators(function: Node) -> Iterator[Node]:
    """Yield a definition and its declarators, from the outermost to the name."""
    inner: Node | None = function
    while inner is not None:
        yield inner
        inner = inner.child_by_field_name("declarator")


def _check_signature(kernels: list[Node], signature: Signature) -> None:
    """Raise SourceError if the kernel's parameters can be read and are not the problem's."""
    for declarator in chain.from_iterable(map(_declarators, kernels)):
        parameters = declarator.child_by_field_name("parameters")
        if parameters is None or parameters.has_error:
            continue
        types = tuple(
            _parameter_type(child)
            for child in parameters.named_children
            if child.type in ("parameter_declaration", "optional_parameter_declaration")
        )
        if any("[" in kind or kind not in _KNOWN_TYPES for kind in types):
            continue  # a typedef or a macro: the compiled kernel's parameters are checked as well
        if types != signature.types:
            line, column = position(parameters)
            raise SourceError(
                f"{signature.kernel} takes ({', '.join(types)}); it must take ({signature.text})",
                line,
                column,
            )


_KNOWN_TYPES = {
    base + stars
    for base in (
        *("float", "double", "int", "char", "short", "long", "void", "size_t"),
        *("half", "__half", "nv_bfloat16", "__nv_bfloat16"),
    )
    for stars in ("", "*", "**")
}


def _parameter_type(parameter: Node) -> str:
    base, default = (parameter.child_by_field_name(name) for name in ("type", "default_value"))
    end = parameter.end_byte if default is None else default.start_byte
    stars = sum(
        1 for leaf in leaves(parameter) if leaf.start_byte < end and leaf.type in ("*", "[")
    )
    return (text_of(base) if base else "?") + "*" * stars


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
