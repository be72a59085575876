"""The first code of a worker process: it confines the process before anything else is loaded.

`python -m harness.judge.workers.entry_point ROLE HANDLE` becomes server.py. A module
that is imported before the process is confined might start a thread that is not.
"""

import gc
import os
import sys
from pathlib import Path

import problem  # noqa: F401 - the folder that it lies in cannot be listed later
from harness.judge.workers.isolation import CACHE_VARIABLE, SCRATCH_VARIABLE, Role, confine


def main(role: Role, handle: int) -> None:
    """Confine the process, and serve one role on a connection until the judge hangs up."""
    scratch = Path(os.environ[SCRATCH_VARIABLE])
    cache = [Path(os.environ[CACHE_VARIABLE])] if CACHE_VARIABLE in os.environ else []
    enforced = confine(role, scratch, cache)
    gc.set_threshold(1_000_000)  # a large program has as many objects, and none is garbage

    from multiprocessing.connection import Connection

    from harness.judge.workers import server

    server.main(role, Connection(handle), enforced)


if __name__ == "__main__":
    main(Role(sys.argv[1]), int(sys.argv[2]))
