"""Finds the host code of a file, and replaces it by blanks before the file is compiled for the
device.

A function is host code if its declaration has no CUDA specifier, no `constexpr`, and no macro that
could contain one. Other host code is found when it does not compile.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node

from harness.compiling.syntax import (
    Walked,
    declared_name,
    descendants,
    leading_to,
    leaves,
    path_to,
    position,
    text_of,
    walked,
)
from harness.protocol.report import Diagnostic

_DEVICE_WORDS = {"__global__", "__device__", "__constant__", "__shared__", "__managed__"}
_CONSTANT_WORDS = {"constexpr": b"__hdconst", "consteval": b"__hdceval"}
"""Each with a macro of prelude.h, for host and device. It has the same length, so that positions
stay."""
_ENDS_A_DECLARATION = {";", "{", "}"}
_CLASSES = {"class_specifier", "struct_specifier", "union_specifier"}
_CLASS_WORDS = {"class", "struct", "union", "namespace"}
_ITEMS = {
    *("declaration", "function_definition", "field_declaration", "friend_declaration"),
    *("template_declaration", "type_definition", "alias_declaration", "linkage_specification"),
    *("using_declaration", "namespace_alias_definition", "expression_statement"),
    "template_instantiation",
    *_CLASSES,
}
_LISTS = {
    *("translation_unit", "declaration_list", "field_declaration_list"),
    *("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"),
}


@dataclass(frozen=True)
class Functions:
    """The function definitions of a file.

    host: free functions that are host code, in the order of the source.
    device: the nodes' ids of all functions with a word of CUDA, also inside classes.
    constant: the words `constexpr` and `consteval` of functions that do not say whether they are
        device code.
    """

    host: tuple[Node, ...]
    device: frozenset[int]
    constant: tuple[Node, ...]


def functions(tree: Walked) -> Functions:
    """Find the function definitions of a file, and which of them are host code."""
    device_words = _DEVICE_WORDS | macros_for(_DEVICE_WORDS, tree)
    words_for_both = _CONSTANT_WORDS.keys() | macros_for({*_CONSTANT_WORDS}, tree)
    index = {leaf.start_byte: i for i, leaf in enumerate(tree.leaves)}
    directives = (node for node in tree.nodes if node.type.startswith("preproc"))
    in_directives = {part.id for directive in directives for part in directive.children}
    host: list[Node] = []
    device: set[int] = set()
    constant: list[Node] = []
    class_until = 0
    for node in tree.nodes:
        if node.type in _CLASSES:
            class_until = max(class_until, node.end_byte)
        body = node.child_by_field_name("body") if node.type == "function_definition" else None
        if body is None or body.start_byte not in index:
            continue
        # The grammar does not know all attributes of CUDA, and ends declarations at some of them.
        words: dict[str, Node] = {}
        in_braces = 0  # of what the declaration contains, such as a member's initial value
        for place in reversed(range(index[body.start_byte])):
            leaf = tree.leaves[place]
            text = text_of(leaf)
            if leaf.start_byte > node.start_byte and (text == "}" or (in_braces and text == "{")):
                in_braces += 1 if text == "}" else -1
            elif in_braces:
                continue
            elif text in _ENDS_A_DECLARATION or leaf.id in in_directives:
                break
            else:
                words[text] = leaf
        if words.keys() & _CLASS_WORDS and not _is_function(node):
            class_until = max(class_until, node.end_byte)
        elif words.keys() & device_words:
            device.add(node.id)
        elif words.keys() & words_for_both:
            constant += [words[word] for word in _CONSTANT_WORDS if word in words]
        elif node.start_byte >= class_until:
            host.append(node)
    return Functions(tuple(host), frozenset(device), tuple(constant))


def _is_function(node: Node) -> bool:
    """Return whether a definition has a list of parameters. Otherwise it is a class or a namespace
    with an attribute or a macro, such as `struct __align__(8) Pair { … }`."""
    inner: Node | None = node
    while inner is not None and inner.type != "function_declarator":
        inner = inner.child_by_field_name("declarator")
    return inner is not None


def macros_for(words: set[str], tree: Walked) -> set[str]:
    """Return the file's macros that stand for one of these words, directly or by other macros."""
    bodies: dict[str, set[str]] = {}
    for node in tree.nodes:
        if node.type in ("preproc_def", "preproc_function_def"):
            name, value = (node.child_by_field_name(field) for field in ("name", "value"))
            if name is not None and value is not None:
                bodies.setdefault(text_of(name), set()).update(re.findall(r"\w+", text_of(value)))
    return leading_to(words, bodies.items())


def with_constants_for_both(code: bytes, found: Functions) -> bytes:
    """Return the code with its constant functions declared for host and device. To nvcc they are
    constants for both; NVRTC would refuse to call them from device code."""
    result = bytearray(code)
    for word in found.constant:
        result[word.start_byte : word.end_byte] = _CONSTANT_WORDS[text_of(word)]
    return bytes(result)


def without_failed_code(
    code: str, errors: Iterable[Diagnostic], kernel: str | None, *, keep_lambdas: bool = False
) -> tuple[str, dict[str, int]]:
    """Return the code without the declarations in which the compiler found errors, as far as the
    submission's kernel may not need them: host code, other kernels, and device functions outside of
    classes. What is left of the code may still name them.

    kernel: the submission's kernel; None if the file does not define it, so that all device code
        stays.
    Returns also the lines of the kernels and device functions that were left out, by name.
    """
    text = code.encode()
    tree = walked(text)
    device, device_words = functions(tree).device, _DEVICE_WORDS | macros_for(_DEVICE_WORDS, tree)
    starts = [0, *(match.end() for match in re.finditer(rb"\n", text))]
    removed: list[Node] = []
    left_out: dict[str, int] = {}
    for error in errors:
        if error.line is not None and error.line <= len(starts):
            at = min(starts[error.line - 1] + (error.column or 1) - 1, len(text))
            path = path_to(tree.root, at, at + 1)
            other = _other_device_code(path, kernel) if kernel else None
            if other is not None:
                left_out[declared_name(other)] = position(other)[0]
            found = other or _removable(path, device, device_words)
            if found and not (keep_lambdas and _has_lambda(found)):
                removed.append(found)
    return blanked(text, removed).decode(), left_out


def _other_device_code(path: list[Node], kernel: str) -> Node | None:
    """Return the device function on this path, unless it is the kernel or in a class."""
    for node in path:
        if node.type in _CLASSES:
            return None
        if node.type == "function_definition":
            head, name = text_of(node).partition("{")[0], declared_name(node)
            # An operator is used without its name.
            is_other = name != kernel and name.isidentifier() and not node.has_error
            return node if is_other and ("__global__" in head or "__device__" in head) else None
    return None


def _has_lambda(declaration: Node) -> bool:
    return any(node.type == "lambda_expression" for node in descendants(declaration))


def _removable(
    path: list[Node], device_functions: frozenset[int], device_words: set[str]
) -> Node | None:
    """Return the smallest whole declaration on this path that can only be host code."""
    if any(node.id in device_functions for node in path):
        return None
    inside = [i for i, node in enumerate(path) if node.type == "function_definition"]
    for place in reversed(range(1, min([len(path), *(i + 1 for i in inside)]))):
        parent, node = path[place - 1], path[place]
        if parent.type not in _LISTS or node.type not in _ITEMS or not _is_whole(node):
            continue
        if not {text_of(leaf) for leaf in leaves(node)} & device_words:
            return node
    return None


def _is_whole(node: Node) -> bool:
    """Return whether a declaration has no error. A macro of a header that is empty here, such as
    `REGISTER(f)`, may lack a semicolon."""
    if node.type == "expression_statement" and node.children[-1].is_missing:
        return not node.children[0].has_error
    return not node.has_error


def blanked(code: bytes, nodes: Iterable[Node]) -> bytes:
    """Return the code with these nodes overwritten by spaces; every line break stays."""
    result = bytearray(code)
    for node in nodes:
        for i in range(node.start_byte, node.end_byte):
            if result[i] not in b"\r\n":
                result[i] = 0x20
        if node.parent is not None and node.parent.type in (
            "linkage_specification",
            "template_declaration",
        ):
            # `extern "C"` or `template <…>` must not remain without a declaration.
            result[node.start_byte : node.start_byte + 1] = b";"
            if node.parent.type == "template_declaration":
                for i in range(node.parent.start_byte, node.start_byte):
                    if result[i] not in b"\r\n":
                        result[i] = 0x20
    return bytes(result)
