"""Run an arena: anybody submits, everybody watches.

Prints its address and, when it is first started, an organiser's key. Ctrl-C ends it; everything
that was submitted is kept, and graded after the next start.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._arguments import count, number
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError

HELP = """\
examples:
  python3 -m harness arena                           this machine, ./arena-data
  python3 -m harness arena --data contest --port 8100
  python3 -m harness arena run --root /arena --https --proxy 127.0.0.1
  python3 -m harness arena backup --file contest.backup --data contest
  python3 -m harness arena restore --file contest.backup --data other
  python3 -m harness arena key --for organiser       a new key for a lost one
  python3 -m harness arena worker-key --name lab-3 --file lab-3.key

The third is for one behind a proxy with TLS. A backup is taken while it runs
or not, and restored where no arena is. A worker key lets another machine grade
for the arena: see `python3 -m harness worker --help`. Without --database it
runs a PostgreSQL of its own in the folder of its data. The rules of a contest
are in rules.toml there. It needs the packages that `nox -s arena` installs.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="?",
        choices=("run", "backup", "restore", "key", "worker-key"),
        default="run",
        help="default: run",
    )
    parser.add_argument("--file", type=Path, help="the backup's, or the worker key's")
    parser.add_argument("--for", dest="name", metavar="NAME", help="of the person who lost a key")
    parser.add_argument("--name", help="of the machine that a worker key is for")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("arena-data"),
        metavar="DIR",
        help="its folder (default: %(default)s)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="to listen on (default: %(default)s)")
    parser.add_argument(
        "--port",
        type=number("a port is a number", 1, 65535),
        default=8040,
        help="default: %(default)s",
    )
    parser.add_argument(
        "--root",
        type=_root,
        default="",
        metavar="/PATH",
        help="the path under which a proxy has it",
    )
    parser.add_argument(
        "--https", action="store_true", help="people reach it by https: cookies go no other way"
    )
    parser.add_argument(
        "--proxy", default="", metavar="ADDRESS", help="believe this proxy's X-Forwarded-For"
    )
    parser.add_argument("--database", metavar="URL", help="a PostgreSQL from 15 on, as its owner")
    parser.add_argument(
        "--workers", type=count, metavar="N", help="default: one for each GPU, else one"
    )
    parser.add_argument(
        "--lease",
        type=_seconds,
        default=15.0,
        metavar="SECONDS",
        help="a worker without a heartbeat for this long is dead (default: %(default)s)",
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    if arguments.file is None and arguments.what in ("backup", "restore"):
        raise UsageError(f"name the backup with --file: arena {arguments.what} --file FILE")
    if arguments.file is not None and arguments.what in ("run", "key"):
        raise UsageError(f"arena {arguments.what} takes no --file")
    if arguments.name is None and arguments.what in ("key", "worker-key"):
        option = "--for PERSON" if arguments.what == "key" else "--name MACHINE"
        raise UsageError(f"say whom the key is for: arena {arguments.what} {option}")
    try:
        from harness.arena import running
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the arena needs {error.name}; `nox -s arena` installs all that it needs"
        ) from None
    running.run(arguments, terminal)
    return Exit.YES


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 2 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"a lease is from 2 to 3600 seconds, not {text!r}")
    return seconds


def _root(text: str) -> str:
    if text and not (text.startswith("/") and not text.endswith("/")):
        raise argparse.ArgumentTypeError(f"a path begins with / and does not end with it: {text!r}")
    return text
