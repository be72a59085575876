"""Code of a file that runs on the host: found where that is certain, and set aside.

A function is certainly host code where nothing in front of its body says otherwise, be it a word of
CUDA or a macro that could stand for one. The compiler names the rest. What can be computed while
compiling is for the host and for the device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from tree_sitter import Node

from harness.compiling.macros import leading_to
from harness.compiling.syntax import Walked, leaves, syntax_tree, text_of
from harness.protocol.report import Diagnostic

_DEVICE_WORDS = {"__global__", "__device__", "__constant__", "__shared__", "__managed__"}
_CONSTANT_WORDS = {"constexpr", "consteval"}
_CONSTEXPR_FOR_BOTH = b"__hdconst"
"""A macro of prelude.h, as long as the word that it replaces, so that nothing moves."""
_ENDS_A_DECLARATION = {";", "{", "}"}
_DECLARATIONS = {"declaration", "function_definition"}
_CLASSES = {"class_specifier", "struct_specifier", "union_specifier"}
_ITEMS = {
    *(*_DECLARATIONS, *_CLASSES),
    *("template_declaration", "type_definition", "alias_declaration"),
}
_LISTS = {"translation_unit", "declaration_list", "preproc_if", "preproc_ifdef", "preproc_else"}


def host_functions(tree: Walked) -> list[Node]:
    """Definitions that are certainly for the host, in the order of the source."""
    device = _DEVICE_WORDS | _CONSTANT_WORDS | _device_macros(tree)
    found = _with_words_before(tree, functions(tree.root))
    return [function for function, words in found if not words.keys() & device]


def with_constants_for_both(code: bytes, tree: Walked) -> bytes:
    """The code with its constant functions for host and device, unless they say for which: nvcc
    computes them while it compiles for either side, which NVRTC takes for a call of host code."""
    result = bytearray(code)
    every = (node for node in tree.nodes if node.type == "function_definition")
    for _, words in _with_words_before(tree, every):
        word = words.get("constexpr")
        if word is not None and not words.keys() & _DEVICE_WORDS:
            result[word.start_byte : word.end_byte] = _CONSTEXPR_FOR_BOTH
    return bytes(result)


def functions(root: Node) -> Iterator[Node]:
    """Definitions of free functions; those inside classes belong to their class."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "function_definition":
            yield node
        elif node.type not in _CLASSES:
            stack.extend(reversed(node.children))


def _with_words_before(
    tree: Walked, definitions: Iterable[Node]
) -> Iterator[tuple[Node, dict[str, Node]]]:
    """Definitions with a body, and the words of each up to that, however the grammar divides them
    up: attributes of CUDA that it does not know end a declaration for it."""
    index = {leaf.start_byte: i for i, leaf in enumerate(tree.leaves)}
    directives = (node for node in tree.nodes if node.type.startswith("preproc"))
    in_directives = {part.id for directive in directives for part in directive.children}
    for function in definitions:
        body = function.child_by_field_name("body")
        if body is None or body.start_byte not in index:
            continue
        words = {}
        for place in reversed(range(index[body.start_byte])):
            leaf = tree.leaves[place]
            text = text_of(leaf)
            if text in _ENDS_A_DECLARATION or leaf.id in in_directives:
                break
            words[text] = leaf
        yield function, words


def _device_macros(tree: Walked) -> set[str]:
    """Macros of the file that stand for a word of CUDA, or for another such macro."""
    bodies: dict[str, set[str]] = {}
    for node in tree.nodes:
        if node.type in ("preproc_def", "preproc_function_def"):
            name, value = (node.child_by_field_name(field) for field in ("name", "value"))
            if name is not None and value is not None:
                bodies.setdefault(text_of(name), set()).update(re.findall(r"\w+", text_of(value)))
    return leading_to(_DEVICE_WORDS | _CONSTANT_WORDS, bodies.items())


def without_host_code(code: str, found: Iterable[Diagnostic]) -> str:
    """The code without declarations that the compiler found to be for the host; one that the
    grammar does not understand, or that holds a word of CUDA, stays."""
    return _without(code, found, _declaration)


def without_what_failed(code: str, found: Iterable[Diagnostic]) -> str:
    """The code without whole declarations, classes among them, in which the compiler found errors:
    a class of the host's has members of types that are not there."""
    return _without(code, found, _item)


def _declaration(node: Node) -> Node | None:
    """The innermost that a node is part of."""
    while node.type not in _DECLARATIONS:
        if node.parent is None:
            return None
        node = node.parent
    return node


def _item(node: Node) -> Node | None:
    """The outermost in its file or namespace that a node is part of."""
    while node.parent is not None and node.parent.type not in _LISTS:
        node = node.parent
    return node if node.type in _ITEMS else None


def _without(code: str, found: Iterable[Diagnostic], part_of: Callable[[Node], Node | None]) -> str:
    text = code.encode()
    root = syntax_tree(text)
    parts = []
    for each in found:
        if each.line is not None:
            at = (each.line - 1, (each.column or 1) - 1)
            part = part_of(root.descendant_for_point_range(at, at) or root)
            if part is not None and not part.has_error:
                words = {text_of(leaf) for leaf in leaves(part)}
                if not words & _DEVICE_WORDS:
                    parts.append(part)
    return blanked(text, parts).decode()


def blanked(code: bytes, nodes: list[Node]) -> bytes:
    """Overwrite nodes with spaces, keeping every line break."""
    result = bytearray(code)
    for node in nodes:
        for i in range(node.start_byte, node.end_byte):
            if result[i] not in b"\r\n":
                result[i] = 0x20
        if node.parent is not None and node.parent.type in (
            "linkage_specification",
            "template_declaration",
        ):
            # `extern "C"` or `template <…>` must not be left in front of nothing.
            result[node.start_byte : node.start_byte + 1] = b";"
            if node.parent.type == "template_declaration":
                for i in range(node.parent.start_byte, node.start_byte):
                    if result[i] not in b"\r\n":
                        result[i] = 0x20
    return bytes(result)
