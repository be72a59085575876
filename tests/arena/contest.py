"""The last hour of a contest on many GPUs, with workers that only sleep and machines that fail.

    python3 -m tests.arena.contest --submissions 10000 --out reports/arena-contest-10000.json

The database, the queue, the workers' loop, the leases and the sweeper are the arena's own; in the
place of a judge is one that sleeps as long as gradings took on an H100 (the times that reports/h100
has). All of it runs faster than life, by `--faster`; only what keeps workers alive does not, so a
dead machine is noticed later than it would be. A simulation, not part of the suite.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import URL, Engine, Row, make_url, text

from harness.arena.build import Build
from harness.arena.judging import Judge
from harness.arena.logs import log_as
from harness.arena.place import Place
from harness.arena.postgres import Server
from harness.arena.presence import Presence
from harness.arena.processes import end_with_parent
from harness.arena.queue import QUEUE, conninfo, queue_app
from harness.arena.rules import Limits
from harness.arena.store import gradings, people, roles
from harness.arena.store.attempts import Attempts
from harness.arena.store.database import open_engine
from harness.arena.store.games import Games
from harness.arena.store.line import Line
from harness.arena.store.membership import Membership, Newcomer
from harness.arena.store.people import Person, Role
from harness.arena.store.preparing import prepare
from harness.arena.sweeper import sweep_once
from harness.arena.worker import Worker
from harness.judge.progress import Progress
from harness.protocol.files import write_whole
from harness.protocol.report import Report, Stage, Submission
from tests.arena.handing_in import submission
from tests.board import factory

ROOT = Path(__file__).resolve().parent.parent.parent
HOUR = 3600.0
PLENTY = Limits(in_flight=10**6, per_day=10**6, device_seconds_per_day=10**6)
PER_MACHINE = 4
LEASE = 5.0


class Sleeper(Judge):
    """Grades in no time but what it sleeps."""

    def __init__(self, faster: float, seed: int) -> None:
        self.lanes = 1
        self._faster = faster
        self._random = random.Random(seed)
        self._times = recorded_seconds()
        self._report = factory.report("any", "any", 1.0)

    def grade(self, submission: Submission, progress: Progress) -> Report:
        seconds = self._random.choice(self._times) / self._faster
        for stage in (Stage.COMPILE, Stage.VERIFY, Stage.SANITIZE, Stage.MEASURE):
            progress.begin(stage, None)
            time.sleep(seconds / 4)
        seed = self._random.getrandbits(40)
        return self._report.model_copy(update={"submission": submission, "seed": seed})


def recorded_seconds() -> list[float]:
    """What gradings took on an H100, waiting for the GPU left out."""
    found = []
    for path in sorted((ROOT / "reports/h100").glob("*.json")):
        stages = json.loads(path.read_text())["stages"]
        found.append(sum(each["seconds"] for each in stages if each["stage"] != "read"))
    return found


# ------------------------------------------------------------------------------------ a machine


async def machine(address: URL, number: int, faster: float) -> None:
    """The workers of one, in one process that can be killed."""

    async def worker(place: int) -> None:
        crew = uuid.uuid4()
        name = f"gpu-{place} of machine {number}"
        membership = Membership(
            Line(conninfo(address)), Newcomer(name, crew, name, None), Build.here()
        )
        async with Presence(membership) as presence:
            working = Line(conninfo(address))
            attempts, games = Attempts(working, membership), Games(working, membership)
            judge = Sleeper(faster, number * PER_MACHINE + place)
            await Worker(queue_app(address), presence, attempts, games, judge, [QUEUE]).run()

    await asyncio.gather(*(worker(place) for place in range(PER_MACHINE)))


class Machines:
    """Eight of them, say; each fails now and then, all at once and without a word."""

    def __init__(self, address: URL, options: argparse.Namespace) -> None:
        self._options = options
        self._address = address.render_as_string(hide_password=False)
        self._random = random.Random(options.seed)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._fail)
        self.failures: list[float] = []
        self.began = time.monotonic()

    def __enter__(self) -> Machines:
        for number in range(self._options.machines):
            self._start(number)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _start(self, number: int) -> None:
        self._processes[number] = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.arena.contest", "--machine", str(number)),
                *("--faster", str(self._options.faster)),
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
        )
        stdin = self._processes[number].stdin
        assert stdin is not None
        stdin.write(f"{self._address}\n".encode())
        stdin.flush()

    def _fail(self) -> None:
        """On the average each machine once in so many minutes; it is back after five."""
        between = self._options.fails_every * 60 / self._options.machines / self._options.faster
        back: dict[int, float] = {}
        next_failure = time.monotonic() + self._random.expovariate(1 / between)
        while not self._over.wait(0.1):
            now = time.monotonic()
            for number in [each for each, when in back.items() if when < now]:
                del back[number]
                self._start(number)
            if now < next_failure:
                continue
            next_failure = now + self._random.expovariate(1 / between)
            number = self._random.randrange(self._options.machines)
            if number not in back:
                self._processes[number].send_signal(signal.SIGKILL)
                self._processes[number].wait()
                back[number] = now + 300 / self._options.faster
                self.failures.append(round((now - self.began) * self._options.faster))


# ----------------------------------------------------------------------------------- the contest


def arrivals(options: argparse.Namespace) -> list[tuple[float, int]]:
    """Second and person of each submission: more towards the end, few people with very many."""
    generator = random.Random(options.seed)
    weights = [1 / (1 + number) ** 0.8 for number in range(options.people)]
    whose = generator.choices(range(options.people), weights, k=options.submissions)
    when = sorted(HOUR * generator.random() ** 0.5 for _ in range(options.submissions))
    return list(zip(when, whose, strict=True))


def hand_all_in(
    engine: Engine, crowd: Sequence[Person], options: argparse.Namespace, began: float
) -> float:
    """At their times, or as fast as can be; how many seconds behind it was at most."""
    behind = 0.0
    for number, (second, whose) in enumerate(arrivals(options)):
        wait = began + second / options.faster - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        behind = max(behind, -wait)
        person = crowd[whose]
        with engine.begin() as connection:
            gradings.hand_in(
                connection, person.id, submission(f"k{number}", person.name), PLENTY, None
            )
    return behind


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--submissions", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=400)
    parser.add_argument("--machines", type=int, default=8, help=f"of {PER_MACHINE} GPUs each")
    parser.add_argument("--fails-every", type=float, default=60, metavar="MINUTES")
    parser.add_argument("--faster", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--machine", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.machine is not None:
        log_as(f"machine {options.machine}", level=40)
        address = make_url(sys.stdin.readline().strip())
        end_with_parent()
        asyncio.run(machine(address, options.machine, options.faster))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder, "data"))
        secrets = place.secrets()
        server = Server(place.database, secrets.owner)
        server.keep_up()
        try:
            prepare(server.url, secrets)
            return contest(server, roles.worker(server.url, secrets), options)
        finally:
            server.stop()


def contest(server: Server, address: URL, options: argparse.Namespace) -> int:
    engine = open_engine(server.url)
    with engine.begin() as connection:
        crowd = [
            people.add_person(connection, f"person {number}", Role.CONTESTANT)
            for number in range(options.people)
        ]
    over = threading.Event()

    def sweep() -> None:
        while not over.wait(1.0):
            sweep_once(engine, LEASE)

    sweeper = threading.Thread(target=sweep)
    before = load(engine, server)
    with Machines(address, options) as machines:
        sweeper.start()
        behind = hand_all_in(engine, crowd, options, machines.began)
        wait(engine, options.submissions)
        seconds = time.monotonic() - machines.began
        after = load(engine, server)
    over.set()
    sweeper.join()
    result = found(engine, options, seconds, machines.failures) | {
        "handing_in_was_behind_seconds": round(behind * options.faster, 1),
        "database": {
            "transactions_a_second": round((after[0] - before[0]) / seconds, 1),
            "transactions_a_grading": round((after[0] - before[0]) / options.submissions, 2),
            "cpu_seconds": round(after[1] - before[1], 1),
            "cpu_milliseconds_a_grading": round(
                1000 * (after[1] - before[1]) / options.submissions, 2
            ),
            "megabytes": round(after[2] / 1e6, 1),
            "machine_load": round(psutil.getloadavg()[0], 1),
            "cpus": psutil.cpu_count(),
        },
    }
    written = json.dumps(result, indent=1) + "\n"
    print(written)
    if options.out:
        write_whole(options.out, written)
    return 0 if result["right"] else 1


def wait(engine: Engine, submissions: int) -> None:
    while True:
        with engine.connect() as connection:
            done = connection.scalar(text("SELECT count(*) FROM gradings WHERE state = 'done'"))
        print(f"\r{done} of {submissions}", end="", file=sys.stderr, flush=True)
        if done and done >= submissions:
            print(file=sys.stderr)
            return
        time.sleep(1)


def load(engine: Engine, server: Server) -> tuple[int, float, int]:
    """Transactions, processor seconds and bytes of the database."""
    with engine.connect() as connection:
        row = connection.execute(
            text(
                "SELECT xact_commit + xact_rollback AS transactions, "
                "pg_database_size(datname) AS bytes FROM pg_stat_database "
                "WHERE datname = current_database()"
            )
        ).one()
    assert server.process_id is not None
    root = psutil.Process(server.process_id)
    spent = sum(root.cpu_times()[:4])  # with those of its children that have ended
    for child in root.children(recursive=True):
        try:
            spent += sum(child.cpu_times()[:2])
        except psutil.Error:
            continue
    return row.transactions, spent, row.bytes


# ------------------------------------------------------------------------------------ what came


def found(
    engine: Engine, options: argparse.Namespace, seconds: float, failures: list[float]
) -> dict[str, Any]:
    """Waiting times by person, in seconds of the contest."""
    with engine.connect() as connection:
        rows = connection.execute(
            text(
                "SELECT person, queued, started, state, attempts, (SELECT count(*) FROM attempts a "
                "WHERE a.grading = g.id AND fate = 'finished') AS finished FROM gradings g "
                "ORDER BY started"
            )
        ).all()
        fates = Counter(connection.execute(text("SELECT fate FROM attempts")).scalars())
        entries = connection.scalar(text("SELECT count(*) FROM entries"))
    waits: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        waits[row.person].append((row.started - row.queued).total_seconds() * options.faster)
    by_count = sorted(waits.values(), key=len)
    quarters = [by_count[n * len(by_count) // 4 : (n + 1) * len(by_count) // 4] for n in range(4)]
    return {
        "right": len(rows) == options.submissions == entries
        and all(row.state == "done" and row.finished == 1 for row in rows),
        "submissions": options.submissions,
        "people": options.people,
        "gpus": options.machines * PER_MACHINE,
        "machines": options.machines,
        "faster_than_life": options.faster,
        "mean_grading_seconds": round(statistics.mean(recorded_seconds()), 1),
        "contest_minutes_until_all_were_graded": round(seconds * options.faster / 60, 1),
        "machine_failures_at_second": failures,
        "attempts": dict(fates),
        "waiting_minutes": quantiles([wait for each in waits.values() for wait in each]),
        "waiting_minutes_of_first_submissions": quantiles([each[0] for each in waits.values()]),
        "by_quarter_of_people": [
            {
                "submissions_each": f"{len(quarter[0])} to {len(quarter[-1])}",
                "waiting_minutes": quantiles([wait for each in quarter for wait in each]),
            }
            for quarter in quarters
        ],
        "turns": fairness(rows),
    }


def quantiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)

    def at(share: float) -> float:
        return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)] / 60, 2)

    return {"median": at(0.5), "p95": at(0.95), "most": at(1.0)}


def fairness(rows: Sequence[Row[Any]]) -> dict[str, float]:
    """Of people who had something waiting through a whole stretch of 200 gradings: by how many
    gradings those who were served most were ahead of those who were served least."""
    stretch = 200
    spans: dict[int, list[tuple[datetime, datetime]]] = defaultdict(list)
    for row in rows:
        spans[row.person].append((row.queued, row.started))
    most, compared = 0, 0
    for first in range(0, len(rows) - stretch, stretch):
        begins, ends = rows[first].started, rows[first + stretch].started
        served = Counter(row.person for row in rows[first : first + stretch])
        waiting = [p for p, each in spans.items() if _covered(each, begins, ends)]
        if len(waiting) > 1:
            counts = [served[person] for person in waiting]
            most = max(most, max(counts) - min(counts))
            compared += 1
    return {"stretches": compared, "gradings_a_stretch": stretch, "most_ahead": most}


def _covered(spans: Sequence[tuple[datetime, datetime]], begins: datetime, ends: datetime) -> bool:
    """Whether somebody had something waiting all the time."""
    until = begins
    for queued, started in sorted(spans):
        if queued <= until < started:
            until = started
    return until >= ends


if __name__ == "__main__":
    sys.exit(main())
