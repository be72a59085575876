"""Reads the launch in a file's own host code: the template instance, and the size of blocks.

The judge launches the kernel itself. So host code is read for two purposes only. One is to find the
instance of a template that it uses, the other to warn if its blocks are not the judge's.
"""

import re
from collections.abc import Iterator

from tree_sitter import Node

from harness.compiling.lexical import at_a_fixed_time, without_comments
from harness.compiling.syntax import Walked, declared_name, descendants, parts, position, text_of
from harness.protocol.report import Diagnostic
from problem.launcher import BLOCK
from problem.signature import Signature

MAX_EXPRESSION = 200
"""The number of characters up to which a constant expression is read."""
_DISPATCHED = {"scalar_t": "float"}
"""The type that PyTorch's AT_DISPATCH macros declare for the code in their argument."""
_OTHER_TYPES = {"double", "half", "__half", "nv_bfloat16", "__nv_bfloat16"}
"""Types with which libraries instantiate a kernel, too; the judge's matrices are float."""
MAX_EXPANSIONS = 8
"""The longest chain of names that are defined by each other."""


class HostCode:
    """The parts of a file's host code that concern the launch, found in one walk.

    instances: the template arguments that the kernel is used with, as written in the file.
    has_instance: whether the file instantiates or specialises the kernel template itself.
    launches: the configuration of each launch of the kernel, and the constants in scope.
    """

    def __init__(
        self, tree: Walked, device_functions: frozenset[int], signature: Signature
    ) -> None:
        """device_functions: the ids of their nodes, of which the insides are left out."""
        self.signature, kernel = signature, signature.kernel
        self.has_instance = False
        self.launches: list[tuple[Node, dict[str, Node]]] = []
        self.constants: dict[str, str] = {}
        self._uses: list[tuple[Node | None, Node]] = []
        """Each use of a template with arguments, and the function that it is in."""
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
            is_instance = node.type == "template_instantiation" and declared_name(node) == kernel
            if node.id in device_functions or is_instance:
                skipped_until = node.end_byte
                self.has_instance |= is_instance
                continue
            if node.type == "function_definition" and node.start_byte >= function_until:
                function, function_until = node, node.end_byte
            elif node.start_byte >= function_until:
                function = None
            if is_use:
                self._uses.append((function, node))
            elif node.type == "kernel_call_syntax" and kernel in _NAME.findall(_launched(node)):
                self.launches.append((node, self._declarations(function)))
        used = (use for use in self._uses if _name(use[1]) == kernel)
        arguments = {text for use in used for text in self._arguments(*use)}
        of_floats = {text for text in arguments if not _OTHER_TYPES & {*_NAME.findall(text)}}
        self.instances = tuple(sorted(of_floats or arguments))

    def _define(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        name = declared_name(node)
        if name and value:
            self.constants[name] = without_comments(_value(value))

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

    def _arguments(self, function: Node | None, use: Node) -> Iterator[str]:
        """Yield the arguments of a template, with the names replaced that are local to the function
        around it: its constants and its own template parameters."""
        listed = use.child_by_field_name("arguments")
        written = without_comments(text_of(listed) if listed else "")[1:-1].strip()
        declared_here = self._declarations(function).items()
        local = _DISPATCHED | {name: _value(node) for name, node in declared_here}
        text = expanded(written, local)
        parameters = _template_parameters(function)
        if not set(_NAME.findall(text)) & parameters.keys():
            yield text
            return
        name = declared_name(function)
        for caller, other in self._uses:
            if _name(other) == name:
                others = other.child_by_field_name("arguments")
                given = [text_of(part) for part in parts(others)] if others else []
                bound = parameters | dict(zip(parameters, given, strict=False))
                bound_here = expanded(text, {n: v for n, v in bound.items() if v})
                declared = self._declarations(caller).items()
                yield expanded(bound_here, {n: _value(v) for n, v in declared})


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


def _value(initial: Node) -> str:
    """Return what a variable begins with, also if it is written in braces."""
    inner = parts(initial) if initial.type == "initializer_list" else []
    return text_of(inner[0] if len(inner) == 1 else initial)


def _name(use: Node) -> str:
    name = use.child_by_field_name("name")
    return text_of(name) if name else ""


def _launched(launch: Node) -> str:
    """Return what is launched, which may be a template with arguments."""
    return text_of(launch.parent.children[0]) if launch.parent else ""


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
_SIZE = re.compile(r"([0-9]{1,4})[uU]?")


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


# ----------------------------------------------------------------------------------------- warning


def block_warning(code: HostCode) -> tuple[Diagnostic, ...]:
    """Return a warning of the first launch with blocks of a known size that is not the judge's."""
    for call, declared in code.launches:
        threads = _threads(call, declared, code.constants)
        if all(threads) and tuple(threads) != BLOCK[: len(threads)]:
            shown = "×".join(str(size) for size in (*threads, 1)[: max(2, len(threads))])
            message = (
                f"the file's own host code launches blocks of {shown} threads, but the judge "
                "always launches blocks of 16×16: `threadIdx.x` and `threadIdx.y` are below 16"
            )
            line, column = position(call)
            warning = Diagnostic(severity="warning", message=message, line=line, column=column)
            return (warning,)
    return ()


def _threads(call: Node, declared: dict[str, Node], constants: dict[str, str]) -> list[int | None]:
    """Return the sizes of a launch's blocks, None where they are no numbers or named numbers."""
    _, block, *_ = (*parts(call), None, None)
    if block is None:
        return []
    meant = declared.get(text_of(block), block)
    lists = ("argument_list", "initializer_list", "parameter_list")
    sizes = next((parts(node) for node in descendants(meant) if node.type in lists), [meant])
    written = (_value(declared.get(text_of(size), size)) for size in sizes)
    values = (_SIZE.fullmatch(constants.get(text, text)) for text in written)
    return [int(value[1]) if value else None for value in values]
