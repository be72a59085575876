"""Eight graders enter a thousand results at once and are killed at random: none lost, none torn."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from harness.leaderboard.document import Document
from harness.leaderboard.sqlite_file import SqliteFile
from harness.leaderboard.store import Store
from harness.report import Report
from tests.leaderboard import factory

GRADERS = 8
ENTRIES = 1000
KILLS = 60
"""At most; a fast machine is done before so many."""


def grade(path: Path, notebook: Path, grader: int) -> None:
    """Enter this grader's share from where its notebook ends; note each id once it is entered."""
    noted = len(notebook.read_text().split()) if notebook.exists() else 0
    with Store(path, "create") as store, notebook.open("a") as notes:
        for number in range(grader, ENTRIES, GRADERS)[noted:]:
            id = store.enter(share(number))
            notes.write(id + "\n")
            notes.flush()


def share(number: int) -> Report:
    return factory.report(f"kernel {number}", f"grader {number % GRADERS}", day=number, rounds=30)


def test_none_lost_none_torn(tmp_path: Path) -> None:
    path = tmp_path / "leaderboard.sqlite"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    generator = random.Random(8)

    def start(grader: int) -> BaseProcess:
        process = context.Process(
            target=grade, args=(path, tmp_path / f"notebook {grader}", grader)
        )
        process.start()
        return process

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
    with Store(path) as store:
        texts = {document.text for document in store.documents()}
        entries = {entry.id for entry in store.entries()}
    assert texts == {Document.of(share(number)).text for number in range(ENTRIES)}
    noted = [line for note in tmp_path.glob("notebook *") for line in note.read_text().split()]
    assert len(noted) >= ENTRIES
    assert set(noted) == entries


def enter_and_die(path: Path, statement: int) -> None:
    """Enter one report, and be killed as its so many-th SQL statement begins."""
    with Store(path, "create") as store:
        begun: list[str] = []

        def trace(sql: str) -> None:
            begun.append(sql)
            if len(begun) == statement:
                os.kill(os.getpid(), signal.SIGKILL)

        database = store._database
        assert isinstance(database, SqliteFile)
        with database.reading() as connection:
            driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.set_trace_callback(trace)
        store.enter(share(0))


@pytest.mark.parametrize("statement", range(1, 7))
def test_killed_at_any_statement_leaves_the_whole_report_or_nothing(
    tmp_path: Path, statement: int
) -> None:
    path = tmp_path / "leaderboard.sqlite"
    with Store(path, "create") as store:
        store.enter(share(1))
    process = multiprocessing.get_context("forkserver").Process(
        target=enter_and_die, args=(path, statement)
    )
    process.start()
    process.join()
    # Entering takes five statements: BEGIN, three INSERTs, COMMIT. The sixth never comes.
    assert process.exitcode == (-signal.SIGKILL if statement <= 5 else 0)
    with Store(path) as store:
        texts = list(store.documents())
        assert store.enter(share(0)) == Document.of(share(0)).id
        store.check()
    assert len(texts) == (1 if statement <= 5 else 2)
