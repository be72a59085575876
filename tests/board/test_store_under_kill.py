"""Graders and mergers are killed at any moment: no report is lost, and none is torn."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from sqlalchemy import event

from harness.board.document import Document
from harness.board.store import Store
from harness.protocol.report import Report
from tests.board import factory
from tests.board.stores import KINDS, New, Where

GRADERS = 8
ENTRIES = {"sqlite": 120, "postgresql": 60}
KILLS = 30
"""The most kills; a fast machine is done earlier."""

STATEMENTS = {"sqlite": 5, "postgresql": 6}
"""The statements that enter one signed report: BEGIN (PostgreSQL also sets a time limit), three
INSERTs, COMMIT."""


def begin(target: Callable[..., None], *arguments: object) -> BaseProcess:
    """Start a process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.board.warmed", __name__])
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


def grade(where: Where, notebook: Path, numbers: range) -> None:
    """Enter this grader's reports from where its notebook ends, and note the id of each."""
    noted = len(notebook.read_text().split()) if notebook.exists() else 0
    with where.open() as store, notebook.open("a") as notes:
        for number in numbers[noted:]:
            id = store.enter(share(number))
            notes.write(id + "\n")
            notes.flush()


def share(number: int) -> Report:
    return factory.report(f"kernel {number}", f"grader {number % GRADERS}", day=number, rounds=8)


@pytest.mark.parametrize("kind", KINDS)
def test_killed_graders_lose_and_tear_nothing(kind: str, new: New, tmp_path: Path) -> None:
    where, count = new(kind), ENTRIES[kind]
    generator = random.Random(8)

    def start(grader: int) -> BaseProcess:
        notebook, numbers = tmp_path / f"notebook {grader}", range(grader, count, GRADERS)
        return begin(grade, where, notebook, numbers)

    graders = {grader: start(grader) for grader in range(GRADERS)}
    killed = 0
    while any(process.exitcode != 0 for process in graders.values()):
        time.sleep(generator.uniform(0, 0.02))
        for grader, process in graders.items():
            if process.exitcode not in (None, 0):
                assert process.exitcode == -signal.SIGKILL, "a grader failed by itself"
                graders[grader] = start(grader)
        victim = graders[generator.randrange(GRADERS)]
        if killed < KILLS and victim.is_alive() and victim.pid:
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            killed += 1

    assert killed >= GRADERS
    with where.open("update") as store:
        texts = {document.text for document in store.documents()}
        entries = {entry.id for entry in store.entries()}
    assert texts == {Document.of(share(number)).text for number in range(count)}
    noted = [line for note in tmp_path.glob("notebook *") for line in note.read_text().split()]
    assert len(noted) >= count
    assert set(noted) == entries


def die(store: Store, statement: int) -> None:
    """Kill this process at the start of its n-th statement from now."""
    begun = 0

    def count(*_: object) -> None:
        nonlocal begun
        begun += 1
        if begun == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    engine = store._database._engine  # type: ignore[attr-defined]
    event.listen(engine, "before_cursor_execute", count)
    event.listen(engine, "commit", count)


def enter_and_die(where: Where, statement: int) -> None:
    with where.open() as store:
        die(store, statement)
        store.enter(share(0))


def run(target: Callable[..., None], *arguments: object) -> int | None:
    """Run a function in a process and return its exit code."""
    process = begin(target, *arguments)
    process.join()
    return process.exitcode


@pytest.mark.parametrize(
    ("kind", "statement"),
    [(kind, number) for kind in KINDS for number in range(1, STATEMENTS[kind] + 2)],
)
def test_a_kill_at_any_statement_leaves_all_or_nothing(new: New, kind: str, statement: int) -> None:
    where = new(kind)
    with where.open() as store:
        store.enter(share(1))
    killed = statement <= STATEMENTS[kind]
    assert run(enter_and_die, where, statement) == (-signal.SIGKILL if killed else 0)
    with where.open("update") as store:
        texts = list(store.documents())
        assert store.enter(share(0)) == Document.of(share(0)).id
        store.check()
    assert len(texts) == (1 if killed else 2)
