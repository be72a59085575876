"""What a file's own host code would launch, where that is something else than the rules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tree_sitter import Node

from harness.compiling.signature import KERNEL_NAME
from harness.compiling.syntax import descendants, position, text_of
from harness.report import Diagnostic
from problem.launcher import BLOCK

MAX_LAUNCHES = 16
"""To warn about; the whole file is searched for the sizes of each."""


def launch_warnings(hosts: list[Node]) -> Iterator[Diagnostic]:
    """Say where the file's own host code would launch something else than the rules do."""
    calls = (
        (host, node)
        for host in hosts
        for node in descendants(host)
        if node.type == "kernel_call_syntax"
    )
    yield from filter(None, (_warning(host, call) for host, call in islice(calls, MAX_LAUNCHES)))


def _warning(host: Node, call: Node) -> Diagnostic | None:
    line, column = position(call)
    kernel = text_of(call.parent.children[0]) if call.parent else "?"
    if kernel.partition("<")[0].rpartition("::")[2] != KERNEL_NAME:
        message = f"the file's own host code also launches `{kernel}`; the judge does not"
    else:
        block = _block_of(call, host)
        if block == BLOCK[: len(block)] if block else False:
            return None
        shown = "×".join(map(str, block)) if block else "other"
        message = (
            f"the file's own host code launches blocks of {shown} threads; the judge launches 16×16"
        )
        if block is None:
            message = (
                "cannot read the block size of the file's own launch; the judge launches 16×16"
            )
    return Diagnostic(severity="warning", message=message, line=line, column=column)


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
    if text.isascii() and text.isdecimal() and len(text) <= 12:
        return int(text)
    if text in names and depth < 4:
        return _number(names[text], names, depth + 1)
    return None
