"""The sweeper: puts gradings whose worker has died back into the queue."""

from __future__ import annotations

import argparse
import logging
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Engine, make_url
from sqlalchemy.exc import DBAPIError, TimeoutError

from harness import __version__
from harness.arena.logs import log_as
from harness.arena.processes import DATABASE_VARIABLE, end_with_parent
from harness.arena.store.database import open_engine
from harness.arena.store.gradings import Swept, sweep
from harness.protocol.report import Environment, JudgeError, Report, Stage, Submission
from problem.cases import CASES_VERSION

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
"""A worker shows a sign of life every second; after so long without one it is taken for dead."""


def sweep_once(engine: Engine, lease_seconds: float, quick: bool = False) -> Swept:
    def give_up(submission: Submission, attempts: int) -> Report:
        return gave_up(submission, attempts, quick)

    with engine.begin() as connection:
        swept = sweep(connection, lease_seconds, give_up)
    for submission in swept.again:
        log.warning("queued again", extra={"submission": submission})
    for submission in swept.given_up:
        log.error("given up", extra={"submission": submission})
    return swept


def gave_up(submission: Submission, attempts: int, quick: bool) -> Report:
    """The report of a grading under which one worker after another has died."""
    return Report(
        environment=Environment(
            judge=__version__,
            cases=CASES_VERSION,
            python=platform.python_version(),
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
        ),
        created=datetime.now(UTC).replace(microsecond=0),
        seed=0,
        quick=quick,
        submission=submission,
        device=None,
        outcome=JudgeError(
            stage=Stage.READ,
            message=f"{attempts} workers died while they graded this; an organiser can have it "
            "graded again",
        ),
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="The arena's sweeper, which the arena starts.")
    parser.add_argument("--lease", type=float, default=LEASE_SECONDS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    log_as("sweeper")
    end_with_parent()
    engine = open_engine(make_url(os.environ.pop(DATABASE_VARIABLE)), connections=1)
    while True:
        try:
            sweep_once(engine, options.lease, options.quick)
        except (DBAPIError, TimeoutError) as error:
            log.warning("the database does not answer: %s", error)
        time.sleep(options.lease / 5)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
