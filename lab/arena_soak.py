"""Kill parts of a real arena at random while many people submit."""

from __future__ import annotations

import argparse
import json
import os
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

import httpx
import psutil
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from harness.arena.data_dir import DataDir
from harness.arena.postgres import address as database_address
from harness.arena.states import MAX_ATTEMPTS
from harness.arena.store import people
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.protocol.files import write_whole
from lab.arena_process import ROOT, running_arena

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

AGAIN_SECONDS = 0.3


@dataclass
class Soak:
    """The kills, retries and answers of one soak test."""

    kills: Counter[str] = field(default_factory=Counter)
    retries: Counter[str] = field(default_factory=Counter)
    answered: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The idempotency key and the expected verdict of every submission that was answered with 202,
    by its id."""


def main(options: argparse.Namespace) -> int:
    """Run the test of the command `soak`; return 0 if nothing was lost or doubled."""
    with tempfile.TemporaryDirectory() as folder:
        return soak(Path(folder, "data"), options)


def soak(data: Path, options: argparse.Namespace) -> int:
    data_dir = DataDir(data)
    data_dir.rules.write_text(RULES)
    more = ("--lease", str(options.lease), "--workers", str(options.workers))
    with running_arena(data, options.port, *more) as arena:
        return run(data_dir, arena, options)


def run(data_dir: DataDir, arena: subprocess.Popen[bytes], options: argparse.Namespace) -> int:
    address = f"http://127.0.0.1:{options.port}"
    engine = open_engine(database_address(data_dir.database, data_dir.secrets().owner))
    with engine.begin() as connection:
        keys = []
        for number in range(options.people):
            person = people.add_person(connection, f"person {number}", Role.CONTESTANT)
            keys.append(people.new_key(connection, person.id, "soak"))
    began = time.monotonic()
    record = Soak()
    over = threading.Event()
    killer = threading.Thread(target=kill, args=(arena, engine, options, record, over))
    killer.start()
    try:
        with ThreadPoolExecutor(options.people) as pool:
            submitting = [
                pool.submit(
                    submit_all,
                    *(address, key, range(first, options.submissions, options.people)),
                    *(record, began + 60 * options.minutes),
                )
                for first, key in enumerate(keys)
            ]
            threading.Thread(target=show, args=(engine, record, over), daemon=True).start()
            for each in submitting:
                each.result()
        submitted = time.monotonic() - began
        wait(engine, len(record.answered))
    finally:
        over.set()
        killer.join()
    wait(engine, len(record.answered))  # the last kill may have hit the database
    result = judged(engine, record, options) | {
        "seconds_to_submit": round(submitted, 1),
        "seconds": round(time.monotonic() - began, 1),
        "cpus": os.cpu_count(),
        "machine_load": round(os.getloadavg()[2], 1),
    }
    content = json.dumps(result, indent=1) + "\n"
    if options.out:
        write_whole(options.out, content)
    print(content)
    return 0 if result["right"] else 1


def submit_all(address: str, key: str, numbers: range, record: Soak, deadline: float) -> None:
    """Submit kernels as one person, one after another."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=address, headers=headers, timeout=20) as client:
        for number in numbers:
            if time.monotonic() > deadline:
                return
            file, verdict = list(KERNELS.items())[number % len(KERNELS)]
            idempotency_key = f"soak-{number}"
            id = submit(client, number, (ROOT / file).read_bytes(), idempotency_key, record)
            # A repeated request must return the same submission.
            again = submit(client, number, (ROOT / file).read_bytes(), idempotency_key, record)
            assert again == id, f"the same key, another submission: {id}, {again}"
            record.answered[id] = (idempotency_key, verdict)


def submit(
    client: httpx.Client, number: int, content: bytes, idempotency_key: str, record: Soak
) -> str:
    """Submit as a careful client does: with the same key until the submission is accepted."""
    while True:
        try:
            answer = client.post(
                "/api/v1/submissions",
                params={"name": f"kernel {number}"},
                content=content,
                headers={"Idempotency-Key": idempotency_key},
            )
        except httpx.HTTPError as error:
            record.retries[type(error).__name__] += 1
            time.sleep(AGAIN_SECONDS)
            continue
        if answer.status_code == 202:
            return str(answer.json()["id"])
        record.retries[str(answer.status_code)] += 1
        if answer.status_code not in (429, 503):
            raise AssertionError(answer.text)
        time.sleep(float(answer.headers["Retry-After"]))


def kill(
    arena: subprocess.Popen[bytes],
    engine: Engine,
    options: argparse.Namespace,
    record: Soak,
    over: threading.Event,
) -> None:
    generator = random.Random(options.seed)
    while not over.wait(generator.uniform(*options.between)):
        part = generator.choice(list(PARTS))
        below = psutil.Process(arena.pid).children(recursive=True)
        chosen = [each for each in below if PARTS[part] in command_line(each)]
        # Three dead attempts are a judge-error by design, which another test covers.
        if not chosen or on_its_last_attempt(engine):
            continue
        with suppress(psutil.Error):
            generator.choice(chosen).kill()
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


def judged(engine: Engine, record: Soak, options: argparse.Namespace) -> dict[str, Any]:
    """Compare the answers that people got with the stored results."""
    with engine.connect() as connection:
        rows = connection.execute(
            text(
                """SELECT s.id, s.idempotency_key, g.verdict, g.attempts, g.state,
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
    failed = [row.died for row in rows if row.verdict == "judge-error"]
    several_results = [row.id for row in rows if row.finished != 1]
    return {
        "right": not (lost or doubled or wrong or several_results)
        and len(record.answered) == entries,
        "people": options.people,
        "workers": options.workers,
        "seed": options.seed,
        "answered_202": len(record.answered),
        "kept": kept,
        "results": entries,
        "lost": lost,
        "doubled": doubled,
        "wrong": wrong,
        "not_one_result": several_results,
        "judge_errors": {
            "that_a_retry_would_have_avoided": sum(each < MAX_ATTEMPTS for each in failed),
            "after_three_dead_attempts": sum(each >= MAX_ATTEMPTS for each in failed),
        },
        "attempts_needed": dict(sorted(Counter(row.attempts for row in rows).items())),
        "attempts": fates,
        "requests_repeated": dict(record.retries),
        "kills": dict(record.kills),
    }
