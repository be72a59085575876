"""What a file's own host code would launch, where the judge launches something else."""

from __future__ import annotations

import ast
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice

from tree_sitter import Node

from harness.compiling.signature import KERNEL_NAME
from harness.compiling.syntax import descendants, parts, position, text_of
from harness.protocol.report import Diagnostic
from problem.launcher import BLOCK, LaunchLine

MAX_LAUNCHES = 16
"""To warn about; the whole file is searched for the sizes of each."""


_INSTANCE = re.compile(rf"(?:\w+::)*{KERNEL_NAME}<[\w:<>,() +*/-]{{1,200}}>", re.ASCII)


def launch_warnings(hosts: list[Node], launch: LaunchLine) -> Iterator[Diagnostic]:
    """Say where the file's own host code would launch something else than its launch line says."""
    texts: dict[str, str] | None = None
    names: dict[int, _Names] = {}
    for host, kernel, call in islice(_launches(hosts), MAX_LAUNCHES):
        if texts is None:
            texts = _constants(host)
        if host.id not in names:
            names[host.id] = _Names(host, texts)
        line, column = position(call)
        for message in _differences(kernel, call, launch, names[host.id]):
            yield Diagnostic(severity="warning", message=message, line=line, column=column)


def launched_instance(hosts: list[Node]) -> str | None:
    """Which instance of the kernel, where it is a template, the file's own host code launches; None
    where that is none, or more than one."""
    launched = {kernel for _, kernel, _ in _launches(hosts)}
    found = [name for name in launched if _INSTANCE.fullmatch(name)]
    return found[0] if len(found) == 1 else None


def _launches(hosts: list[Node]) -> Iterator[tuple[Node, str, Node]]:
    """In which of these functions which kernel is launched, and what is between `<<<` and `>>>`."""
    for host in hosts:
        for node in descendants(host):
            if node.type == "call_expression":
                for part in node.children:
                    if part.type == "kernel_call_syntax":
                        yield host, text_of(node.children[0]), part


def _differences(kernel: str, call: Node, launch: LaunchLine, names: _Names) -> Iterator[str]:
    if kernel.partition("<")[0].rpartition("::")[2] != KERNEL_NAME:
        yield f"the file's own host code also launches `{kernel}`; the judge does not"
        return
    grid, *others = parts(call)
    block, shared = (*others, None, None)[:2]
    sizes = _sizes(block, names) if block else None
    if sizes is None:
        yield "cannot read the block size of the file's own launch; the judge launches 16×16"
    elif sizes != BLOCK[: len(sizes)]:
        shown = "×".join(map(str, sizes))
        yield (
            f"the file's own host code launches blocks of {shown} threads; the judge always "
            "launches 16×16, for which the kernel has to be rewritten"
        )
        return
    tile = _tile(grid, names)
    if tile and launch.tile_rows == launch.tile_columns == 16 and tile != (16, 16):
        yield (
            f"the file's own host code launches a block for every {tile[0]}×{tile[1]} elements of "
            f"C, the judge for every 16×16; write `// solve: tile={tile[0]}x{tile[1]}`"
        )
    if shared and text_of(shared) != "0" and not launch.shared_memory:
        size = names.number(names.meant(shared))
        yield (
            "the file's own host code launches with dynamic shared memory, the judge without; "
            f"write `// solve: shared_memory={size or 'BYTES'}`"
        )


def _parts(value: Node, names: _Names) -> list[Node]:
    """The sizes that a dim3 or a number is made of."""
    meant = names.meant(value)
    lists = [
        node
        for node in descendants(meant)
        if node.type in ("argument_list", "initializer_list", "parameter_list")
    ]
    return parts(lists[0]) if lists else [meant]


def _sizes(block: Node, names: _Names) -> tuple[int, ...] | None:
    """The block of a <<<grid, block>>> whose sizes are written as numbers."""
    found = [names.number(part) for part in _parts(block, names)]
    sizes = tuple(size for size in found if size is not None)
    return sizes + (1,) * (2 - len(sizes)) if len(sizes) == len(found) else None


def _tile(grid: Node, names: _Names) -> tuple[int, int] | None:
    """Rows and columns of C that a block is for, where the grid is (columns / number, rows /
    number), however that is rounded up."""
    found = [_divisor(part, names) for part in _parts(grid, names)[:2]]
    if len(found) != 2 or found[0] is None or found[1] is None:
        return None
    return found[1], found[0]


def _divisor(part: Node, names: _Names) -> int | None:
    """Of `(K + 63) / 64`, or of `ceil_div(K, 64)`."""
    if part.type == "binary_expression" and text_of(part.children[1]) == "/":
        return names.number(part.children[2])
    arguments = part.child_by_field_name("arguments")
    if arguments is not None and len(parts(arguments)) == 2:
        return names.number(parts(arguments)[1])
    return None


MAX_EXPRESSION = 200
MAX_NUMBER = 10**12
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a // b if b else 0,
}


def _constants(node: Node) -> dict[str, str]:
    """What the file that a node is of gives names to: #define and initialised declarations."""
    root = node
    while root.parent is not None:
        root = root.parent
    texts: dict[str, str] = {}
    for child in descendants(root):
        if child.type == "preproc_def":
            name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
            if name and value:
                texts[text_of(name)] = text_of(value)
        elif child.type == "init_declarator" and len(parts(child)) == 2:
            texts[text_of(parts(child)[0])] = text_of(parts(child)[1])
    return texts


class _Names:
    """What names stand for in a host function: numbers of the whole file, and what the function
    itself declares."""

    def __init__(self, host: Node, texts: dict[str, str]) -> None:
        self.texts = texts
        self.values: dict[str, int | None] = {}
        self.declared: dict[str, list[Node]] = defaultdict(list)
        for child in descendants(host):
            # `dim3 block(TILE, TILE);` reads like the declaration of a function.
            if child.type in ("init_declarator", "function_declarator"):
                name, *_, value = parts(child)
                self.declared[text_of(name)].append(value)

    def meant(self, value: Node) -> Node:
        """What an argument stands for: itself, or what is declared by its name, once."""
        declared = self.declared.get(text_of(value), [])
        return declared[0] if len(declared) == 1 else value

    def number(self, node: Node) -> int | None:
        """What a constant expression comes to."""
        return self._number(text_of(node))

    def _number(self, text: str) -> int | None:
        """As far as C and Python write it alike."""
        text = text.strip().replace("sizeof(float)", "4")
        if len(text) > MAX_EXPRESSION or not text.isascii():
            return None
        try:
            return self._value(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, RecursionError):
            return None

    def _value(self, expression: ast.expr) -> int | None:
        match expression:
            case ast.Constant(value=int() as value) if value < MAX_NUMBER:
                return value
            case ast.Name(id=name):
                return self._named(name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                a, b = self._value(left), self._value(right)
                return None if a is None or b is None else _OPERATORS[type(op)](a, b)
        return None

    def _named(self, name: str) -> int | None:
        if name in self.texts and name not in self.values:
            self.values[name] = None  # where it leads back to itself
            self.values[name] = self._number(self.texts[name])
        return self.values.get(name)
