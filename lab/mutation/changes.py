"""Every change of a file's functions that is tried: mutmut's operators, without its machinery.

mutmut copies the whole project and starts pytest for every change. Here a change is put into the
function object itself, in a child of the process that has collected the tests: it takes a tenth of
the time, and functions with decorators are changed too.
"""

from __future__ import annotations
import __future__

import difflib
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import libcst as cst
from mutmut.mutation.file_mutation import NEVER_MUTATE_FUNCTION_CALLS
from mutmut.mutation.mutators import mutation_operators


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one function."""

    function: str
    """The name as Python qualifies it in its module: `Class.method`."""
    before: str
    after: str

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.function}\n{self.after}".encode()).hexdigest()[:16]

    @property
    def lines(self) -> str:
        """The lines that differ, as `diff` shows them."""
        compared = difflib.unified_diff(self.before.split("\n"), self.after.split("\n"), n=0)
        return "\n".join(line for line in list(compared)[2:] if not line.startswith("@@"))

    def apply_to(self, functions: Iterable[FunctionType]) -> None:
        """Make it, in place, so that whoever holds the function, or one that it has made, holds the
        changed one."""
        for function in functions:
            changed = self._made(function)
            if function.__code__.co_qualname == self.function:
                function.__code__ = changed.__code__
                function.__defaults__ = changed.__defaults__
                function.__kwdefaults__ = changed.__kwdefaults__
            else:
                name = function.__code__.co_name
                inner = [code for code in _codes(changed.__code__) if code.co_name == name]
                with suppress(ValueError):  # it has other variables now: the next made is changed
                    function.__code__ = inner[0]

    def _made(self, function: FunctionType) -> FunctionType:
        owner, _, name = self.function.rpartition(".")
        source = self.after
        if owner:  # what is private to a class, and super(), mean something in a class only
            body = "\n".join(f"    {line}" for line in source.split("\n"))
            source = f"class {owner}:\n{body}"
        flags = __future__.annotations.compiler_flag
        made: dict[str, Any] = {}
        exec(
            compile(source, function.__code__.co_filename, "exec", flags, dont_inherit=True),
            function.__globals__,
            made,
        )
        result = vars(made[owner])[name] if owner else made[name]
        assert isinstance(result, FunctionType)
        return result


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the changes of functions inside a function."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def changes(path: Path) -> Iterator[Change]:
    """Yield the changes of all functions and methods of a file. Each comes once, though two
    operators may make the same change."""
    module = cst.parse_module(path.read_text(encoding="utf-8"))
    for owner, function in _functions(module):
        bare = function.with_changes(decorators=(), leading_lines=())
        before = module.code_for_node(bare)
        found = set[str]()
        for old, new in _replacements(bare):
            changed = bare.deep_replace(old, new)
            assert isinstance(changed, cst.FunctionDef)
            after = module.code_for_node(changed)
            if after not in found:
                found.add(after)
                yield Change(f"{owner}{function.name.value}", before, after)


_NEVER_CHANGED = {"processes_of_session"}
"""Functions that say what is to be killed: changed, they would name every process there is."""


def _functions(module: cst.Module) -> Iterator[tuple[str, cst.FunctionDef]]:
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef):
            if statement.name.value not in _NEVER_CHANGED:
                yield "", statement
        elif isinstance(statement, cst.ClassDef):
            for method in statement.body.body:
                if isinstance(method, cst.FunctionDef):
                    yield f"{statement.name.value}.", method


def _replacements(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """Types are for the type checker, how a sentence is worded is no behaviour, and neither is the
    name of an encoding."""
    if isinstance(node, cst.Annotation | cst.Decorator):
        return
    if isinstance(node, cst.SimpleString) and " " in node.value:
        return
    if (
        isinstance(node, cst.Call)
        and getattr(node.func, "value", "") in NEVER_MUTATE_FUNCTION_CALLS
    ):
        return
    for kind, operator in mutation_operators:
        if isinstance(node, kind):
            for new in operator(node):
                if not _changes_no_behaviour(node, new):
                    yield node, new
    for child in node.children:
        if not (isinstance(child, cst.Arg) and _is_left_alone(child)):
            yield from _replacements(child)


_LEFT_ALONE = {"encoding", "strict", "thread_name_prefix"}
"""Arguments of calls: all text is UTF-8 by whatever name, `zip` is held to what is so, and threads
have names for people."""


def _is_left_alone(argument: cst.Arg) -> bool:
    return argument.keyword is not None and argument.keyword.value in _LEFT_ALONE


def _changes_no_behaviour(old: cst.CSTNode, new: cst.CSTNode) -> bool:
    """Whether only an argument differs that is left alone."""
    if not (isinstance(old, cst.Call) and isinstance(new, cst.Call)):
        return False
    if any(map(_is_left_alone, old.args)):
        kept = [
            [argument for argument in call.args if not _is_left_alone(argument)]
            for call in (old, new)
        ]
        same = len(kept[0]) == len(kept[1]) and old.func.deep_equals(new.func)
        return same and all(a.value.deep_equals(b.value) for a, b in zip(*kept, strict=True))
    return False
