"""Many people submit while parts of a real arena are killed at random: nothing lost or doubled.

    python3 -m tests.arena.soak --submissions 100 --out reports/arena-kills-100.json

A soak test, not part of the suite: a thousand gradings take the CPU device hours. It ends with
exit code 0 if every submission that was answered with 202 has one result, and the right one.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from sqlalchemy import URL, Engine, text

from harness.arena.place import Place
from harness.arena.postgres import DATABASE, OWNER
from harness.arena.store import people
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.files import write_whole

ROOT = Path(__file__).resolve().parent.parent.parent
KERNELS = {
    "solutions/02_shared_tile.cu": "accepted",
    "tests/submissions/compile-error/syntax.cu": "compile-error",
    "tests/submissions/compile-error/no_such_kernel.cu": "compile-error",
    "tests/submissions/wrong-answer/transposed.cu": "wrong-answer",
    "tests/submissions/memory-error/no_row_check.cu": "memory-error",
    "tests/submissions/race/no_barrier_after_loading.cu": "race",
}
PARTS = {
    "web": "harness.arena.web.server",
    "worker": "harness.arena.worker",
    "sweeper": "harness.arena.sweeper",
    "database": "postgres",
}
RULES = """\
title = "soak"
quick = true
[limits]
in_flight = 1000
per_day = 100000
device_seconds_per_day = 10000000
per_address_per_minute = 1000000
"""


@dataclass
class Soak:
    """What happened."""

    kills: list[dict[str, Any]] = field(default_factory=list)
    retries: Counter[str] = field(default_factory=Counter)
    answered: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Every id that came with a 202: the idempotency key, and the expected verdict."""
    asked_again: int = 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--submissions", type=int, default=100)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=8931)
    parser.add_argument("--lease", type=float, default=5.0)
    parser.add_argument("--between", type=float, nargs=2, default=(2.0, 6.0), metavar="SECONDS")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return soak(Path(folder, "data"), options)


def soak(data: Path, options: argparse.Namespace) -> int:
    place = Place(data)
    place.rules.write_text(RULES)
    with open(data / "arena.log", "w") as log:
        arena = subprocess.Popen(
            [
                *(sys.executable, "-m", "harness", "arena", "--data", str(data)),
                *("--port", str(options.port), "--lease", str(options.lease)),
            ],
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
    try:
        return run(place, arena, options)
    finally:
        arena.send_signal(signal.SIGTERM)
        arena.wait(60)


def run(place: Place, arena: subprocess.Popen[bytes], options: argparse.Namespace) -> int:
    address = f"http://127.0.0.1:{options.port}"
    until_well(address)
    engine = open_engine(owner(place))
    with engine.begin() as connection:
        keys = []
        for number in range(options.people):
            person = people.add_person(connection, f"person {number}", Role.CONTESTANT)
            keys.append(people.new_key(connection, person.id, "soak"))
    began = time.monotonic()
    happened = Soak()
    over = threading.Event()
    killer = threading.Thread(target=kill, args=(arena, engine, options, happened, over))
    killer.start()
    try:
        with ThreadPoolExecutor(options.people) as pool:
            for number in range(options.submissions):
                pool.submit(submit, address, keys[number % options.people], number, happened)
        handed_in = time.monotonic() - began
        wait(engine, options.submissions)
    finally:
        over.set()
        killer.join()
    result = judged(engine, happened, options) | {
        "seconds_to_hand_in": round(handed_in, 1),
        "seconds": round(time.monotonic() - began, 1),
    }
    text_of_it = json.dumps(result, indent=1) + "\n"
    if options.out:
        write_whole(options.out, text_of_it)
    print(json.dumps({name: value for name, value in result.items() if name != "kill_log"}))
    return 0 if result["right"] else 1


def owner(place: Place) -> URL:
    return URL.create(
        "postgresql+psycopg",
        username=OWNER,
        password=place.secrets().owner,
        database=DATABASE,
        query={"host": str(place.database)},
    )


def until_well(address: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}/healthz").status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise SystemExit("the arena does not start")


def submit(address: str, key: str, number: int, happened: Soak) -> None:
    """As a careful client does: the same key until there is an answer."""
    file, verdict = list(KERNELS.items())[number % len(KERNELS)]
    content = (ROOT / file).read_bytes()
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"soak-{number}"}
    # Once more after the answer: it must be the same submission.
    for time_asked in range(2):
        while True:
            try:
                answer = httpx.post(
                    f"{address}/api/v1/submissions",
                    params={"name": f"kernel {number}"},
                    content=content,
                    headers=headers,
                    timeout=20,
                )
            except httpx.HTTPError as error:
                happened.retries[type(error).__name__] += 1
                time.sleep(0.3)
                continue
            if answer.status_code == 202:
                break
            happened.retries[str(answer.status_code)] += 1
            time.sleep(0.3)
        id = answer.json()["id"]
        if time_asked:
            assert id in happened.answered, "the same key, another submission"
        happened.answered[id] = (f"soak-{number}", verdict)


def kill(
    arena: subprocess.Popen[bytes],
    engine: Engine,
    options: argparse.Namespace,
    happened: Soak,
    over: threading.Event,
) -> None:
    generator = random.Random(options.seed)
    began = time.monotonic()
    while not over.wait(generator.uniform(*options.between)):
        part = generator.choice(list(PARTS))
        if part == "worker" and on_its_last_attempt(engine):
            continue  # three dead attempts are a judge-error, and that has a test of its own
        for process in psutil.Process(arena.pid).children():
            try:
                command = process.cmdline()
                if PARTS[part] in command or (command and command[0].endswith(f"/{PARTS[part]}")):
                    process.kill()
                    happened.kills.append(
                        {"second": round(time.monotonic() - began, 2), "part": part}
                    )
                    break
            except psutil.Error:
                continue


def on_its_last_attempt(engine: Engine) -> bool:
    query = """SELECT count(*) FROM gradings g WHERE state = 'grading' AND 2 <= (
        SELECT count(*) FROM attempts a WHERE a.grading = g.id AND fate = 'died')"""
    try:
        with engine.connect() as connection:
            return bool(connection.scalar(text(query)))
    except Exception:
        return True


def wait(engine: Engine, submissions: int) -> None:
    while True:
        try:
            with engine.connect() as connection:
                done = connection.scalar(text("SELECT count(*) FROM gradings WHERE state = 'done'"))
            print(f"\r{done} of {submissions}", end="", file=sys.stderr, flush=True)
            if done and done >= submissions:
                print(file=sys.stderr)
                return
        except Exception:
            pass
        time.sleep(1)


def judged(engine: Engine, happened: Soak, options: argparse.Namespace) -> dict[str, Any]:
    """Compare what people were told with what is kept."""
    with engine.connect() as connection:
        rows = connection.execute(
            text(
                """SELECT s.id, s.idempotency_key, g.verdict, g.attempts, g.state,
                (SELECT count(*) FROM gradings o WHERE o.submission = s.id) AS gradings,
                (SELECT count(*) FROM attempts a
                    WHERE a.grading = g.id AND fate = 'finished') AS finished
                FROM submissions s JOIN gradings g ON g.id = s.counts"""
            )
        ).all()
        kept = connection.scalar(text("SELECT count(*) FROM submissions"))
        entries = connection.scalar(text("SELECT count(*) FROM entries"))
        fates = dict(
            connection.execute(text("SELECT fate, count(*) FROM attempts GROUP BY fate")).all()
        )
    found = {row.id: row for row in rows}
    lost = [id for id in happened.answered if id not in found]
    doubled = (kept or 0) - len(happened.answered) + sum(row.gradings - 1 for row in rows)
    wrong = [
        f"{found[id].idempotency_key}: {found[id].verdict}, not {verdict}"
        for id, (_, verdict) in happened.answered.items()
        if id in found and found[id].verdict != verdict
    ]
    several_results = [row.id for row in rows if row.finished != 1]
    return {
        "right": not (lost or doubled or wrong or several_results)
        and len(happened.answered) == options.submissions == entries,
        "submissions": options.submissions,
        "people": options.people,
        "seed": options.seed,
        "answered_202": len(happened.answered),
        "kept": kept,
        "results": entries,
        "lost": lost,
        "doubled": doubled,
        "wrong": wrong,
        "not_one_result": several_results,
        "attempts": fates,
        "requests_repeated": dict(happened.retries),
        "kills": dict(Counter(kill["part"] for kill in happened.kills)),
        "kill_log": happened.kills,
    }


if __name__ == "__main__":
    sys.exit(main())
