"""Measure how fast the pages of a real arena are under load.

The arena has 10 000 entries. Locust reads 30 pages a second while 300 pages watch the board or a
submission, and the CPU device grades. Pages that watch the board read it again at each change.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.arena.data_dir import DataDir
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from lab.arena_filled import fill
from lab.arena_process import ROOT, running_arena

HELP = """\
example:
  python3 -m lab load --out load.json

It needs the packages of the dependency group `test`.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--visitors", type=int, default=330, help="one in eleven reads pages")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--port", type=int, default=8933)
    parser.add_argument("--out", type=Path, help="write the percentiles of each page as JSON")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        data = Path(folder, "data")
        keys = fill(DataDir(data), arguments.entries)
        with running_arena(data, arguments.port):
            options = [
                f"--host=http://127.0.0.1:{arguments.port}",
                f"--users={arguments.visitors}",
                f"--spawn-rate={arguments.visitors}",
                f"--run-time={arguments.seconds}s",
                *([f"--json-file={arguments.out.with_suffix('')}"] if arguments.out else []),
            ]
            load = [sys.executable, "-m", "locust", "--locustfile=lab/arena_load.py", "--headless"]
            done = subprocess.run(
                [*load, "--only-summary", *options],
                cwd=ROOT,
                env={**os.environ, "MATMUL_ARENA_LOAD_KEYS": " ".join(keys)},
                check=False,
            )
    return Exit.NO if done.returncode else Exit.YES
