"""Reads the launch in a file's own host code: the template instance, and the sizes.

The judge launches the kernel itself. So host code is read for two purposes only: to find the
instance of a template that it uses, and to warn if its launch differs from the judge's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from harness.compiling.expression import ExpressionError, evaluate_by_definitions
from harness.compiling.lexical import at_a_fixed_time, without_comments
from harness.compiling.syntax import Walked, declared_name, descendants, parts, position, text_of
from harness.protocol.report import Diagnostic
from problem.launcher import BLOCK, LaunchLine
from problem.signature import Signature

MAX_LAUNCHES = 16
"""The number of launches that are compared with the judge's."""
MAX_EXPRESSION = 200
"""The number of characters up to which a constant expression is read."""
MAX_EXPANSIONS = 8
"""The longest chain of names that are defined by each other."""


@dataclass(frozen=True)
class HostCode:
    """The parts of a file's host code that concern the launch.

    signature: what the kernel must be.
    has_instance: whether the file instantiates or specialises the kernel template itself.
    instances: the template arguments that the kernel is used with, as written in the file.
    launches: each launch's kernel, what is between `<<<` and `>>>`, and the names it may use.
    """

    signature: Signature
    has_instance: bool
    instances: tuple[str, ...]
    launches: tuple[tuple[str, Node, dict[str, Node]], ...]
    constants: dict[str, str]


def read_host_code(
    tree: Walked, device_functions: frozenset[int], signature: Signature
) -> HostCode:
    """Read everything outside of the device functions, which are given by their nodes' ids."""
    found = _Reader(tree, device_functions, signature.kernel)
    instances = {
        text
        for function, node in found.uses
        if _name(node) == signature.kernel
        for text in found.arguments(function, node)
    }
    return HostCode(
        signature,
        found.has_instance,
        tuple(sorted(instances)),
        tuple(found.launches),
        found.constants,
    )


def instance_expressions(kernel: str, code: HostCode) -> tuple[str, ...]:
    """Return the expressions by which the compiler is asked for the instance of a kernel template,
    in the order in which they should be tried. There are none if host code uses several."""
    if len(code.instances) > 1 or (code.has_instance and not code.instances):
        return ()
    arguments = "".join(code.instances)
    named = f"{kernel}<{at_a_fixed_time(arguments)}>" if arguments else kernel
    # From these casts the compiler finds the template arguments that host code leaves out.
    types = code.signature.pointer_types
    casts = tuple(f"(void (*)({', '.join(each)})){named}" for each in types)
    return (named, *casts) if arguments else casts


class _Reader:
    """One walk through the host code of a file."""

    def __init__(self, tree: Walked, device_functions: frozenset[int], kernel: str) -> None:
        self.uses: list[tuple[Node | None, Node]] = []
        """Each use of a template with arguments, and the function that it is in."""
        self.has_instance = False
        self.launches: list[tuple[str, Node, dict[str, Node]]] = []
        self.constants: dict[str, str] = {}
        self._declared: dict[int, dict[str, Node]] = {}
        skipped_until = function_until = 0
        function: Node | None = None
        for node in tree.nodes:
            if node.type in ("preproc_def", "init_declarator"):
                self._define(node)
            is_use = node.type in ("template_function", "template_type")
            if node.start_byte < skipped_until:
                self.has_instance |= is_use and _name(node) == kernel
                continue
            if node.id in device_functions or node.type == "template_instantiation":
                skipped_until = node.end_byte
                is_template = node.type == "template_instantiation"
                self.has_instance |= is_template and declared_name(node) == kernel
                continue
            if node.type == "function_definition" and node.start_byte >= function_until:
                function, function_until = node, node.end_byte
            elif node.start_byte >= function_until:
                function = None
            if is_use:
                self.uses.append((function, node))
            elif node.type == "kernel_call_syntax" and len(self.launches) < MAX_LAUNCHES:
                self._launch(function, node)

    def _define(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        name = declared_name(node)
        if name and value:
            self.constants[name] = without_comments(text_of(value))

    def _launch(self, function: Node | None, node: Node) -> None:
        call = node.parent
        if call is not None and call.type == "call_expression":
            declared = self._declarations(function)
            called = text_of(call.children[0])
            meant = declared.get(called)
            self.launches.append((text_of(meant) if meant else called, node, declared))

    def _declarations(self, function: Node | None) -> dict[str, Node]:
        """Return the names that a host function declares once, with their definitions."""
        if function is None:
            return {}
        if function.id not in self._declared:
            found: dict[str, list[Node]] = {}
            for node in descendants(function):
                # `dim3 block(16, 16);` looks like the declaration of a function.
                parent_type = node.parent.type if node.parent else ""
                if node.type == "init_declarator" or (
                    node.type == "function_declarator" and parent_type == "declaration"
                ):
                    found.setdefault(declared_name(node), []).append(parts(node)[-1])
            self._declared[function.id] = {n: v[0] for n, v in found.items() if len(v) == 1}
        return self._declared[function.id]

    def arguments(self, function: Node | None, use: Node, depth: int = 3) -> Iterator[str]:
        """Yield the arguments of a template, with the names replaced that are local to the function
        around it: its constants and its own template parameters."""
        listed = use.child_by_field_name("arguments")
        written = without_comments(text_of(listed) if listed else "")[1:-1].strip()
        local = {name: text_of(value) for name, value in self._declarations(function).items()}
        text = expanded(written, local)
        parameters = _template_parameters(function)
        if depth == 0 or not set(_NAME.findall(text)) & parameters.keys():
            yield text
            return
        name = declared_name(function)
        for caller, other in self.uses:
            if _name(other) == name:
                others = other.child_by_field_name("arguments")
                given = [text_of(part) for part in parts(others)] if others else []
                bound = parameters | dict(zip(parameters, given, strict=False))
                bound_here = expanded(text, {n: v for n, v in bound.items() if v})
                yield self._bound_in(caller, bound_here)

    def _bound_in(self, caller: Node | None, text: str) -> str:
        return expanded(text, {n: text_of(v) for n, v in self._declarations(caller).items()})


def _name(use: Node) -> str:
    name = use.child_by_field_name("name")
    return text_of(name) if name else ""


def _template_parameters(function: Node | None) -> dict[str, str]:
    """Return the template parameters of a function, each with its default or an empty text."""
    template = function.parent if function else None
    if template is None or template.type != "template_declaration":
        return {}
    found: dict[str, str] = {}
    for parameter in parts(template.children[1]):
        names = [node for node in parts(parameter) if node.type.endswith("identifier")]
        default = parameter.child_by_field_name("default_value") or parameter.child_by_field_name(
            "default_type"
        )
        if names:
            found[text_of(names[0])] = text_of(default) if default else ""
    return found


# ---------------------------------------------------------------------------- constant expressions

_NAME = re.compile(r"[A-Za-z_]\w*")
_INTEGER = re.compile(r"\b([0-9]{1,12})[uUlL]{0,3}\b")


def expanded(text: str, names: dict[str, str]) -> str:
    """Return an expression with names replaced by their definitions, as long as it stays short."""
    for _ in range(MAX_EXPANSIONS):
        longer = _NAME.sub(lambda match: _grouped(names.get(match[0], match[0])), text)
        if longer == text or len(longer) > MAX_EXPRESSION:
            break
        text = longer
    return text


def _grouped(text: str) -> str:
    return f"({text})" if re.search(r"[^\w\s:]", text) else text


def _number(expression: Node, constants: dict[str, str]) -> int | None:
    """Return the value of an expression of whole numbers, or None."""

    def in_python(text: str) -> str:
        text = without_comments(text).replace("sizeof(float)", "4")
        return _INTEGER.sub(r"\1", text)

    definitions = {name: in_python(text) for name, text in constants.items()}
    try:
        return evaluate_by_definitions(in_python(text_of(expression)), definitions)
    except ExpressionError:
        return None


# ---------------------------------------------------------------------------------------- warnings


def launch_warnings(code: HostCode, launch: LaunchLine) -> Iterator[Diagnostic]:
    """Yield a warning for each difference between a launch of the file's own and the judge's."""
    for kernel, call, declared in code.launches:
        line, column = position(call)
        sizes = _Sizes(declared, code.constants)
        if code.signature.kernel not in _NAME.findall(kernel):
            differences = [f"the file's own host code also launches `{kernel}`; the judge does not"]
        else:
            differences = [*_differences(code.signature.output, call, launch, sizes)]
        for message in differences:
            yield Diagnostic(severity="warning", message=message, line=line, column=column)


@dataclass(frozen=True)
class _Sizes:
    """How the arguments of a launch are understood."""

    declared: dict[str, Node]
    constants: dict[str, str]

    def written(self, argument: Node) -> list[Node]:
        """Return the sizes that a dim3 or a number is made of."""
        meant = self.declared.get(text_of(argument), argument)
        for node in descendants(meant):
            if node.type in ("argument_list", "initializer_list", "parameter_list"):
                return parts(node)
        return [meant]

    def number(self, expression: Node) -> int | None:
        return _number(self.declared.get(text_of(expression), expression), self.constants)

    def divisor(self, expression: Node) -> int | None:
        """Return the 64 of `(K + 63) / 64` or of `ceil_div(K, 64)`."""
        if expression.type == "binary_expression" and text_of(expression.children[1]) == "/":
            return self.number(expression.children[2])
        arguments = expression.child_by_field_name("arguments")
        if arguments is not None and len(parts(arguments)) == 2:
            return self.number(parts(arguments)[1])
        return None


def _differences(output: str, call: Node, launch: LaunchLine, sizes: _Sizes) -> Iterator[str]:
    grid, block, shared, *_ = (*parts(call), None, None, None)
    written: list[Node] = sizes.written(block) if block else []
    threads = [sizes.number(each) for each in written]
    if all(threads) and tuple(threads) != BLOCK[: len(threads)]:
        shown = "×".join(str(size) for size in (*threads, 1)[: max(2, len(threads))])
        names = sorted({text_of(each) for each in written if _NAME.fullmatch(text_of(each))})
        tile = " and ".join(f"`{name}`" for name in names) if names else "the kernel's tile size"
        cure = f"set {tile} to 16, or compute several elements per thread"
        if all(size == 1 for size in threads[1:]):
            cure = "number the threads of a block by `threadIdx.y * 16 + threadIdx.x`"
            cure += "" if threads[0] == 256 else ", of which there are 256"
        yield (
            f"the file's own host code launches blocks of {shown} threads, but the judge always "
            f"launches 16×16: {cure}"
        )
        return
    columns, rows = (sizes.divisor(each) for each in (*sizes.written(grid), grid, grid)[:2])
    if rows and columns and (rows, columns) != (16, 16) and _has_default_tile(launch):
        yield (
            f"the file's own host code launches a block for every {rows}×{columns} elements of "
            f"{output}, the judge for every 16×16; write `// solve: tile={rows}x{columns}`"
        )
    if shared and text_of(shared) != "0" and not launch.shared_memory:
        yield (
            "the file's own host code launches with dynamic shared memory, the judge without; "
            f"write `// solve: shared_memory={sizes.number(shared) or 'BYTES'}`"
        )


def _has_default_tile(launch: LaunchLine) -> bool:
    return launch.tile_rows == launch.tile_columns == 16
