"""An arena on this machine, one of whose workers is killed in the middle of a job.

    python3 -m tests.arena.on_gpus --submissions 8                      on all its GPUs
    python3 -m tests.arena.on_gpus --device cpu --workers 2 --quick     where there is none

Everything is the arena's own: database, queue, supervisor, workers, leases, sweeper. Prints what
came of it as JSON. Run by lab/gpus.py, too.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Engine, insert, text

from harness.arena.build import Build
from harness.arena.checkup import CheckUp, Known
from harness.arena.crew import crew
from harness.arena.logs import log_as
from harness.arena.place import Place
from harness.arena.postgres import Server
from harness.arena.store import gradings, people, roles
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.arena.store.preparing import prepare
from harness.arena.store.tables import checkups, workers
from harness.arena.supervisor import Part, Supervisor
from harness.arena.sweeper import LEASE_SECONDS, judge_checkups, sweep_once
from harness.devices.health import health
from harness.protocol.report import Report, Stage
from tests.arena.handing_in import PLENTY, submission

ROOT = Path(__file__).resolve().parents[2]
MIXTURE = (
    "compile-error/syntax",
    "wrong-answer/accumulator_not_reset",
    "accepted/02_shared_tile",
    "compile-error/no_such_kernel",
    "wrong-answer/off_by_one_in_the_sum",
    "memory-error/no_row_check",
    "wrong-answer/transposed",
    "accepted/02_shared_tile",
    "compile-error/two_kernels_of_the_name",
    "race/no_barrier_after_loading",
)
"""What is handed in, over and over: the verdict that each must get, and its name."""

LOOK_SECONDS = 0.2


def killing_one(
    device: Literal["auto", "cpu"],
    count: int | None,
    submissions: int,
    seconds: float,
    known: Sequence[Report] = (),
    quick: bool = False,
    kill_at: str = "verify",
) -> dict[str, Any]:
    """Grades so many submissions, and kills the first worker that is at this stage.

    known: gradings of known kernels on these GPUs, a moment ago: they are their check-up, so that
    none is made here. seconds: when it gives up.
    """
    log_as("arena", level=30)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder, "data"))
        secrets = place.secrets()
        server = Server(place.database, secrets.owner)
        server.keep_up()
        try:
            prepare(server.url, secrets, quick)
            engine = open_engine(server.url)
            _check_up(engine, known)
            address = roles.worker(server.url, secrets).render_as_string(hide_password=False)
            parts = crew(address, device, count, ["--quick"] if quick else [])
            return _contest(engine, parts, submissions, seconds, kill_at)
        finally:
            server.stop()


def _check_up(engine: Engine, known: Sequence[Report]) -> None:
    """What the judge takes for each GPU's check-up of today; whatever it says of one, it judges."""
    for report in known:
        assert report.device is not None and report.device.uuid is not None
    by_gpu = {report.device.uuid: report.device for report in known if report.device is not None}
    for id, device in by_gpu.items():
        assert id is not None
        found = CheckUp(
            judge=str(Build.here()),
            device=device,
            cold=health(id),
            hot=health(id),
            known=tuple(
                Known.of(
                    report.submission.name,
                    report.verdict,
                    report.score,
                    report.measurement.rounds if report.measurement else (),
                )
                for report in known
                if report.device is not None and report.device.uuid == id
            ),
        )
        with engine.begin() as connection:
            connection.execute(
                insert(workers).values(
                    id=id,
                    name=id,
                    model=device.name,
                    session=uuid.uuid4(),
                    crew=uuid.uuid4(),
                    clock_ahead=0.0,
                    draining=False,
                    organiser_says="in service",
                )
            )
            connection.execute(
                insert(checkups).values(worker=id, found=found.model_dump(mode="json"))
            )
    judge_checkups(engine)


def _contest(
    engine: Engine, parts: Sequence[Part], submissions: int, seconds: float, stage: str
) -> dict[str, Any]:
    with engine.begin() as connection:
        person = people.add_person(connection, "ada", Role.CONTESTANT).id
        for number, kind in zip(range(submissions), cycle(MIXTURE)):
            each = submission(f"{kind.replace('/', ' ')} {number}", "ada", source_of(kind))
            gradings.hand_in(connection, person, each, PLENTY, None)
    began = time.monotonic()
    killed: dict[str, Any] | None = None
    with _at_work(engine, parts):
        while (over := time.monotonic() - began) < seconds:
            if killed is None:
                killed = _kill_one(engine, parts, stage)
            states = _states(engine)
            print(f"\r{over:.0f} s: {dict(states)}", end="", file=sys.stderr, flush=True)
            if states["done"] == submissions:
                break
            time.sleep(LOOK_SECONDS)
    print(file=sys.stderr)
    return _found(engine, submissions) | {
        "killed": killed,
        "lease_seconds": LEASE_SECONDS,
        "seconds": round(time.monotonic() - began, 1),
    }


def source_of(kind: str) -> str:
    verdict, name = kind.split("/")
    folder = ROOT / "solutions" if verdict == "accepted" else ROOT / "tests/submissions" / verdict
    return (folder / f"{name}.cu").read_text()


@contextmanager
def _at_work(engine: Engine, parts: Sequence[Part]) -> Iterator[None]:
    """The workers under their supervisor, and the sweeper."""
    over = threading.Event()

    def sweep() -> None:
        while not over.wait(1.0):
            sweep_once(engine, LEASE_SECONDS)
            judge_checkups(engine)

    supervisor = Supervisor(None, parts)
    threads = [threading.Thread(target=sweep), threading.Thread(target=supervisor.run)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        supervisor.stop()
        for thread in threads:
            thread.join()


def _kill_one(engine: Engine, parts: Sequence[Part], stage: str) -> dict[str, Any] | None:
    """The first worker that is at this stage; None while there is none."""
    with engine.connect() as connection:
        row = connection.execute(
            text(
                "SELECT g.submission, a.worker FROM gradings g JOIN attempts a ON a.id = g.attempt "
                "WHERE g.state = 'grading' AND g.progress->'stages'->-1->>'stage' = :stage LIMIT 1"
            ),
            {"stage": stage},
        ).one_or_none()
    if row is None:
        return None
    (part,) = (part for part in parts if row.worker.startswith(f"{part.name} "))
    assert part.process is not None
    part.process.send_signal(signal.SIGKILL)
    with engine.connect() as connection:
        held = connection.scalar(
            text("SELECT count(*) FROM attempts WHERE worker = :worker AND ended IS NULL"),
            {"worker": row.worker},
        )
    return {"worker": part.name, "at": stage, "gradings_in_hand": held}


def _states(engine: Engine) -> Counter[str]:
    with engine.connect() as connection:
        return Counter(connection.scalars(text("SELECT state FROM gradings")))


def _found(engine: Engine, submissions: int) -> dict[str, Any]:
    with engine.connect() as connection:
        rows = connection.execute(
            text(
                "SELECT g.state, e.name, e.verdict, e.uuid, e.score, "
                "(SELECT count(*) FROM attempts a "
                "WHERE a.grading = g.id AND a.fate = 'finished') AS finished "
                "FROM gradings g LEFT JOIN entries e ON e.id = g.report ORDER BY g.ended"
            )
        ).all()
        checked = connection.execute(text("SELECT worker, fault FROM checkups")).all()
        fates = connection.scalars(text("SELECT coalesce(fate, 'open') FROM attempts")).all()
        entries = connection.scalar(text("SELECT count(*) FROM entries"))
    return {
        "submissions": submissions,
        "waiting": sum(row.state in ("queued", "grading") for row in rows),
        "lost": submissions - sum(row.state in ("queued", "grading", "done") for row in rows),
        "doubled": sum(row.finished > 1 for row in rows) + max(0, (entries or 0) - submissions),
        "verdicts": dict(Counter(row.verdict for row in rows)),
        "misjudged": [
            f"{row.name}: {row.verdict}"
            for row in rows
            if row.verdict is not None and row.verdict != row.name.split()[0]
        ],
        "attempts": dict(Counter(fates)),
        "faults_of_gpus": {row.worker: row.fault for row in checked},
        "scores": [[row.uuid, row.score] for row in rows if row.score is not None],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--submissions", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--known", type=Path, help="reports of these GPUs, as JSON lines")
    parser.add_argument("--kill-at", choices=[stage.value for stage in Stage], default="verify")
    chosen = parser.parse_args()
    lines = chosen.known.read_text().splitlines() if chosen.known else []
    found = killing_one(
        chosen.device,
        chosen.workers,
        chosen.submissions,
        chosen.seconds,
        [Report.model_validate_json(line) for line in lines],
        chosen.quick,
        chosen.kill_at,
    )
    print(json.dumps(found))
    wrong = ("waiting", "lost", "doubled", "misjudged")
    return 1 if any(found[each] for each in wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
