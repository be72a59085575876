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
    in_order = [leaf for leaf in tree.leaves if leaf.type != "comment"]
    index = {leaf.start_byte: i for i, leaf in enumerate(in_order)}
    macros = _device_macros(tree)
    found = []
    for function in functions(tree.root):
        body = function.child_by_field_name("body")
        if body is None or body.start_byte not in index:
            continue
        if not _words_before(in_order, index[body.start_byte]).keys() & (
            _DEVICE_WORDS | _CONSTANT_WORDS | macros
        ):
            found.append(function)
    return found


def with_constants_for_both(code: bytes, tree: Walked) -> bytes:
    """The code with its constant functions for host and device, unless they say for which: nvcc
    computes them while it compiles for either side, which NVRTC takes for a call of host code."""
    result = bytearray(code)
    in_order = [leaf for leaf in tree.leaves if leaf.type != "comment"]
    index = {leaf.start_byte: i for i, leaf in enumerate(in_order)}
    for function in tree.nodes:
        if function.type != "function_definition":
            continue
        body = function.child_by_field_name("body")
        if body is None or body.start_byte not in index:
            continue
        declared = _words_before(in_order, index[body.start_byte])
        if declared.keys() & _DEVICE_WORDS or "constexpr" not in declared:
            continue
        word = declared["constexpr"]
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


def _words_before(in_order: list[Node], body: int) -> dict[str, Node]:
    """The words of a declaration up to its body, however the grammar divides them up: attributes
    of CUDA that it does not know end a declaration for it."""
    found = {}
    for leaf in reversed(in_order[:body]):
        text = text_of(leaf)
        in_directive = leaf.parent is not None and leaf.parent.type.startswith("preproc")
        if text in _ENDS_A_DECLARATION or in_directive:
            break
        found[text] = leaf
    return found


def _device_macros(tree: Walked) -> set[str]:
    """Macros of the file that stand for a word of CUDA, or for another such macro."""
    bodies: dict[str, set[str]] = {}
    for node in tree.nodes:
        if node.type in ("preproc_def", "preproc_function_def"):
            name, value = (node.child_by_field_name(field) for field in ("name", "value"))
            if name is not None and value is not None:
                bodies.setdefault(text_of(name), set()).update(re.findall(r"\w+", text_of(value)))
    return leading_to(_DEVICE_WORDS | _CONSTANT_WORDS, bodies.items())


def without_declarations_at(code: str, places: Iterable[tuple[int, int]]) -> str:
    """The code without the declarations at lines and columns that the compiler called host code;
    one that the grammar does not understand, or that holds a word of CUDA, stays."""
    return _without(code, places, _declaration)


def without_items_at(code: str, places: Iterable[tuple[int, int]]) -> str:
    """The same for all that stands outside of functions and classes."""
    return _without(code, places, _item)


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


def _without(
    code: str, places: Iterable[tuple[int, int]], part_of: Callable[[Node], Node | None]
) -> str:
    text = code.encode()
    root = syntax_tree(text)
    found = []
    for line, column in places:
        at = (line - 1, column - 1)
        inner = root.descendant_for_point_range(at, at)
        node = part_of(inner) if inner is not None else None
        if node is not None and not node.has_error:
            words = {text_of(leaf) for leaf in leaves(node)}
            if not words & _DEVICE_WORDS:
                found.append(node)
    return blanked(text, found).decode()


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
