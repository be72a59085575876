"""Changes are made where a function is held already: behind decorators, and in what it has made."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lab.mutation.changes import Change

SOURCE = """
from functools import cache

class Thing:
    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def twice(self) -> int:
        return 2 * self.size

@cache
def add(a: int, b: int = 1) -> int:
    return a + b

def adder(n: int):
    def inner(m: int) -> int:
        return m + n
    return inner

def say(path) -> str:
    path.read_text(encoding="utf-8")
    return "a sentence of words"

def processes_of_session(leader: int) -> set[int]:
    return {leader + 1}
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[object, list[Change]]:
    from lab.mutation.changes import changes  # what reads a file for it takes long to import

    path = tmp_path / "changed_here.py"
    path.write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.reload(importlib.import_module("changed_here")), list(changes(path))


def one(found: list[Change], function: str, after: str) -> Change:
    (change,) = (c for c in found if c.function == function and c.lines.endswith(f"+{after}"))
    return change


def test_a_property_a_cached_function_and_a_default_are_changed_in_place(
    made: tuple[object, list[Change]],
) -> None:
    module, found = made
    Thing, add = vars(module)["Thing"], vars(module)["add"]
    one(found, "Thing.twice", "    return 2 / self.size").apply_to([Thing.twice.fget])
    assert Thing(4).twice == 0.5
    default = "def add(a: int, b: int = 2) -> int:"
    one(found, "add", default).apply_to([add.__wrapped__])
    assert add(1) == 3


def test_what_a_function_has_made_is_changed_with_it(made: tuple[object, list[Change]]) -> None:
    module, found = made
    adder = vars(module)["adder"]
    plus_three = adder(3)
    assert isinstance(plus_three, FunctionType) and plus_three(4) == 7
    one(found, "adder", "        return m - n").apply_to([adder, plus_three])
    assert plus_three(4) == 1 and adder(1)(4) == 3


def test_neither_types_nor_sentences_are_changed(made: tuple[object, list[Change]]) -> None:
    _, found = made
    assert not [change for change in found if change.function == "say"]
    assert len({change.key for change in found}) == len(found) == 6
    assert all("int" in change.after for change in found)


def test_what_two_operators_make_alike_is_one_change(tmp_path: Path) -> None:
    from lab.mutation.changes import changes

    path = tmp_path / "changed_here.py"
    path.write_text("def nothing(f):\n    return f(0, 0)", encoding="utf-8")
    made = [change.lines.rpartition("return ")[2] for change in changes(path)]
    assert "f(0, )" in made and len({*made}) == len(made)


def test_who_is_to_be_killed_is_not_changed(made: tuple[object, list[Change]]) -> None:
    module, found = made
    assert vars(module)["processes_of_session"](1) == {2}
    assert not [change for change in found if change.function == "processes_of_session"]
