"""Several sources compiled at a time, each by a compiler that is idle."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from harness.judge.workers.isolation import Role
from harness.protocol.compiler import Compile, Compiled, Disassemble, Disassembled
from harness.protocol.errors import JudgeFailure
from harness.protocol.report import CompileError, Stage
from lab import compilers
from lab.compilers import compile_all, disassemble_all
from tests.judge.stages.fakes import disassembled, kernel

NAMES = [f"kernel {number}" for number in range(9)]


class Compilers:
    """All that were opened; a source that is wrong does not compile."""

    def __init__(self) -> None:
        self.opened = self.ended = 0
        self.at_work: set[int] = set()
        self.lock = threading.Lock()

    def worker(self, role: Role) -> Compiling:
        assert role is Role.COMPILER
        self.opened += 1
        return Compiling(self)


class Compiling:
    def __init__(self, house: Compilers) -> None:
        self.house = house

    def __enter__(self) -> Compiling:
        return self

    def __exit__(self, *_: object) -> None:
        self.house.ended += 1

    def ask(self, request: Any) -> Any:
        with self.house.lock:
            assert id(self) not in self.house.at_work, "it is at another source"
            self.house.at_work.add(id(self))
        try:
            if isinstance(request, Disassemble):
                return Disassembled(kernel=disassembled(request.kernel), warnings=())
            assert isinstance(request, Compile) and request.arch == "sm_80"
            if request.source == "wrong":
                return CompileError(stage=Stage.COMPILE, message="no such thing")
            made = kernel().model_copy(update={"entry": request.source})
            return Compiled(kernel=made, warnings=(), nvrtc="13.0")
        finally:
            with self.house.lock:
                self.house.at_work.remove(id(self))


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Compilers:
    made = Compilers()
    monkeypatch.setattr(compilers, "Worker", made.worker)
    return made


@pytest.mark.parametrize(("cores", "count"), [(2, 2), (64, 8), (None, 1)])
def test_each_source_becomes_its_kernel(
    cores: int | None, count: int, house: Compilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    made = compile_all({name: name.upper() for name in NAMES}, "sm_80")
    assert {name: each.entry for name, each in made.items()} == {n: n.upper() for n in NAMES}
    assert [*made] == NAMES
    assert house.opened == house.ended == count


def test_what_was_compiled_can_be_disassembled(house: Compilers) -> None:
    found = disassemble_all({"one": kernel()})
    assert found == {"one": disassembled(kernel())}
    assert house.opened == house.ended == 1


def test_nothing_needs_no_compiler(house: Compilers) -> None:
    assert compile_all({}, "sm_80") == {} and house.opened == 0


def test_one_that_does_not_compile_is_named(house: Compilers) -> None:
    with pytest.raises(JudgeFailure, match=r"^bad does not compile: no such thing$"):
        compile_all({"good": "right", "bad": "wrong"}, "sm_80")
    assert house.opened == house.ended
