"""Kill parts of a real arena at random while many people submit.

The exit code is 0 if every submission that was answered with 202 has exactly
one result, and the correct one.

example:
  python3 -m lab soak --submissions 1000 --workers 4 --out soak.json
"""

import argparse
import json
import logging
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request

import psutil
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from harness.arena import client
from harness.arena.data_dir import DataDir
from harness.arena.postgres import address as database_address
from harness.arena.states import MAX_ATTEMPTS
from harness.arena.store import people
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.protocol.files import write_whole
from lab.arena_process import ROOT, running_arena


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--submissions", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the kills and the results as JSON")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    logging.getLogger(client.__name__).setLevel(logging.ERROR)  # it warns before each repetition
    with tempfile.TemporaryDirectory() as folder:
        data_dir = DataDir(Path(folder, "data"))
        data_dir.make()
        data_dir.rules.write_text(RULES)
        workers = "--workers", str(arguments.workers)
        with running_arena(data_dir.folder, PORT, *workers) as arena:
            return soak(data_dir, arena, arguments)


PEOPLE = 20
PORT = 8931
BETWEEN = 2.0, 6.0
"""The seconds between two kills."""

KERNELS = {
    "solutions/02_shared_tile.cu": "accepted",
    "tests/submissions/compile-error/syntax.cu": "compile-error",
    "tests/submissions/compile-error/no_such_kernel.cu": "compile-error",
    "tests/submissions/wrong-answer/transposed.cu": "wrong-answer",
    "tests/submissions/memory-error/no_row_check.cu": "memory-error",
    "tests/submissions/race/no_barrier_after_loading.cu": "race",
}
PARTS = {
    "web": "-m harness.arena.web.server ",
    "renderer": "-m anyio.to_process ",
    "worker": "-m harness.arena.workers.process ",
    "compiler": "-m harness.judge.workers.entry_point compiler ",
    "grader": "-m harness.judge.workers.entry_point cpu ",
    "database": "/postgres -D ",
}
"""The processes that are killed, by a part of their command lines."""

RULES = """\
title = "soak"
quick = true
[limits]
per_day = 100000
device_seconds_per_day = 10000000
per_address_per_minute = 1000000
"""
"""The limit of waiting submissions is the usual one, so people who submit all the time are told to
wait."""

REFUSALS = {*range(400, 500)} - {429}
"""The statuses after which a person does not try again."""


@dataclass
class Soak:
    """The kills and answers of one soak test."""

    kills: Counter[str] = field(default_factory=Counter)
    answered: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The idempotency key and the expected verdict of every submission that was answered with 202,
    by its id."""


def soak(data_dir: DataDir, arena: subprocess.Popen[bytes], options: argparse.Namespace) -> Exit:
    """Return NO if anything was lost or doubled."""
    engine = open_engine(database_address(data_dir.database, data_dir.secrets().owner))
    with engine.begin() as connection:
        keys = []
        for number in range(PEOPLE):
            person = people.add_person(connection, f"person {number}", Role.CONTESTANT)
            keys.append(people.new_key(connection, person.id, "soak"))
    began = time.monotonic()
    record = Soak()
    over = threading.Event()
    killer = threading.Thread(target=kill, args=(arena, engine, record, over))
    killer.start()
    threading.Thread(target=show, args=(engine, record, over), daemon=True).start()
    try:
        with ThreadPoolExecutor(PEOPLE) as pool:
            submitting = [
                pool.submit(submit_all, key, range(first, options.submissions, PEOPLE), record)
                for first, key in enumerate(keys)
            ]
            for each in submitting:
                each.result()
        wait(engine, len(record.answered))
    finally:
        over.set()
        killer.join()
    wait(engine, len(record.answered))  # the last kill may have hit the database
    result = judged(engine, record) | {"seconds": round(time.monotonic() - began, 1)}
    content = json.dumps(result, indent=1) + "\n"
    if options.out:
        write_whole(options.out, content)
    print(content)
    return Exit.YES if result["right"] else Exit.NO


def submit_all(key: str, numbers: range, record: Soak) -> None:
    """Submit kernels as one person, one after another."""
    for number in numbers:
        file, verdict = list(KERNELS.items())[number % len(KERNELS)]
        idempotency_key = f"soak-{number}"
        request = Request(
            f"http://127.0.0.1:{PORT}/api/v1/submissions?name=kernel%20{number}",
            (ROOT / file).read_bytes(),
            {"Authorization": f"Bearer {key}", "Idempotency-Key": idempotency_key},
        )
        # A repeated request must return the same submission.
        id, again = (
            str(json.loads(client.ask(request, 20.0, float("inf"), REFUSALS))["id"])
            for _ in range(2)
        )
        assert again == id, f"the same key, another submission: {id}, {again}"
        record.answered[id] = (idempotency_key, verdict)


def kill(
    arena: subprocess.Popen[bytes], engine: Engine, record: Soak, over: threading.Event
) -> None:
    while not over.wait(random.uniform(*BETWEEN)):
        part = random.choice(list(PARTS))
        below = psutil.Process(arena.pid).children(recursive=True)
        chosen = [each for each in below if PARTS[part] in command_line(each)]
        # Three dead attempts are a judge-error by design, which another test covers.
        if not chosen or on_its_last_attempt(engine):
            continue
        with suppress(psutil.Error):
            random.choice(chosen).kill()
            record.kills[part] += 1


def command_line(process: psutil.Process) -> str:
    try:
        return " ".join([*process.cmdline(), ""])
    except psutil.Error:
        return ""


def on_its_last_attempt(engine: Engine) -> bool:
    """Return whether some submission has two dead attempts; true while the database is away."""
    query = """SELECT count(*) FROM gradings g WHERE state IN ('queued', 'grading') AND 2 <= (
        SELECT count(*) FROM attempts a WHERE a.grading = g.id AND fate = 'died')"""
    try:
        with engine.connect() as connection:
            return bool(connection.scalar(text(query)))
    except DBAPIError:
        return True


def show(engine: Engine, record: Soak, over: threading.Event) -> None:
    """Print the progress until everything is over."""
    while not over.wait(10):
        print(f"{done(engine)} of {len(record.answered)}", file=sys.stderr, flush=True)


def wait(engine: Engine, submissions: int) -> None:
    while (done(engine) or 0) < submissions:
        time.sleep(1)


def done(engine: Engine) -> int | None:
    """Return the number of finished gradings; None while the database is away."""
    try:
        with engine.connect() as connection:
            statement = text("SELECT count(*) FROM gradings WHERE state = 'done'")
            return int(connection.execute(statement).scalar_one())
    except DBAPIError:
        return None


def judged(engine: Engine, record: Soak) -> dict[str, Any]:
    """Compare the answers that people got with the stored results."""
    with engine.connect() as connection:
        rows = connection.execute(
            text(
                """SELECT s.id, s.idempotency_key, g.verdict,
                (SELECT count(*) FROM gradings o WHERE o.submission = s.id) AS gradings,
                (SELECT count(*) FROM attempts a
                    WHERE a.grading = g.id AND fate = 'finished') AS finished,
                (SELECT count(*) FROM attempts a
                    WHERE a.grading = g.id AND fate = 'died') AS died
                FROM submissions s JOIN gradings g ON g.id = s.counts"""
            )
        ).all()
        kept = connection.scalar(text("SELECT count(*) FROM submissions"))
        entries = connection.scalar(text("SELECT count(*) FROM entries"))
        attempts = connection.execute(text("SELECT fate, count(*) FROM attempts GROUP BY fate"))
        fates: dict[str, int] = dict(attempts.tuples().all())
    found = {row.id: row for row in rows}
    lost = [id for id in record.answered if id not in found]
    doubled = (kept or 0) - len(record.answered) + sum(row.gradings - 1 for row in rows)
    wrong = [
        f"{found[id].idempotency_key}: {found[id].verdict}, not {verdict}"
        for id, (_, verdict) in record.answered.items()
        if id in found and found[id].verdict != verdict
    ]
    several_results = [row.id for row in rows if row.finished != 1]
    too_early = [row.id for row in rows if row.verdict == "judge-error" and row.died < MAX_ATTEMPTS]
    return {
        "right": not (lost or doubled or wrong or several_results)
        and len(record.answered) == entries,
        "answered_202": len(record.answered),
        "kept": kept,
        "results": entries,
        "lost": lost,
        "doubled": doubled,
        "wrong": wrong,
        "not_one_result": several_results,
        "judge_errors_too_early": too_early,
        "attempts": fates,
        "kills": dict(record.kills),
    }
