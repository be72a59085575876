"""CUDA source as a syntax tree of tree-sitter, and functions to traverse it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

_LANGUAGE = Language(tree_sitter_cuda.language())


def syntax_tree(code: bytes) -> Node:
    """Return the root of the tree. Text that the grammar does not know is an ERROR node."""
    return Parser(_LANGUAGE).parse(code).root_node


def descendants(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it, in the order of the source."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def parts(node: Node) -> list[Node]:
    """Return the named children of a node, without comments."""
    return [child for child in node.named_children if child.type != "comment"]


def leaves(node: Node) -> Iterator[Node]:
    return (child for child in descendants(node) if child.child_count == 0)


@dataclass(frozen=True, slots=True)
class Walked:
    """The nodes of a file's tree, in the order of the source. The tree is walked only once, because
    a large file has a hundred thousand nodes."""

    nodes: tuple[Node, ...]
    leaves: tuple[Node, ...]

    @property
    def root(self) -> Node:
        return self.nodes[0]


def walked(code: bytes) -> Walked:
    nodes = tuple(descendants(syntax_tree(code)))
    return Walked(nodes, tuple(node for node in nodes if node.child_count == 0))


def declared_name(node: Node | None) -> str:
    """Return the name that a declarator, a definition or a macro declares, or an empty text."""
    while node is not None:
        inner = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        if inner is None:
            named = [c for c in parts(node) if c.type.endswith(("identifier", "declarator"))]
            if not named or node.type.endswith("identifier"):
                return text_of(node) if node.type.endswith("identifier") else ""
            inner = named[0]
        node = inner
    return ""


def path_to(root: Node, start: int, end: int) -> list[Node]:
    """Return the nodes that hold this range of bytes, from the root to the smallest.

    It takes time linear in the size of the tree; going up by `parent` would be quadratic.
    """
    found = [root]
    while True:
        inner = [c for c in found[-1].children if c.start_byte <= start and end <= c.end_byte]
        if not inner:
            return found
        found.append(inner[0])


def text_of(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def position(node: Node) -> tuple[int, int]:
    """Return the line and the column of a node, counted from 1."""
    return node.start_point[0] + 1, node.start_point[1] + 1


def leading_to(words: Set[str], bodies: Iterable[tuple[str, Set[str]]]) -> set[str]:
    """Return the macros whose body has one of the words, or the name of another such macro.

    bodies: each macro's name, and the words of its body.
    """
    users: dict[str, list[str]] = defaultdict(list)
    for name, body in bodies:
        for word in body:
            users[word].append(name)
    found: set[str] = set()
    waiting = list(words)
    while waiting:
        for name in users.pop(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found
