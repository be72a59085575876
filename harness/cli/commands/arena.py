"""Run an arena: the judge as a web service.

It prints its address and, at the first start, an organiser's key. Ctrl-C ends
it; submissions are kept, and graded after the next start.

examples:
  For this machine, in the folder arena-data:
    python3 -m harness arena
  In another folder, on another port:
    python3 -m harness arena --data contest --port 8100
  Behind a proxy with TLS:
    python3 -m harness arena run --root /arena --https --proxy 127.0.0.1
  Make a backup, also while the arena runs, and restore it into a new folder:
    python3 -m harness arena backup --file contest.backup --data contest
    python3 -m harness arena restore --file contest.backup --data other
  Replace a lost key:
    python3 -m harness arena key --for organiser
  Let another machine grade for the arena:
    python3 -m harness arena worker-key --name lab-3 --file lab-3.key

`python3 -m harness worker --help` explains the last example. Without
--database, the arena runs a PostgreSQL of its own in its folder. The rules of
the contest are in rules.toml there. The arena needs the packages that
`nox -s arena` installs.
"""

from __future__ import annotations

import argparse
import os
from ipaddress import ip_network
from pathlib import Path

from sqlalchemy import URL

from harness.arena import arena
from harness.arena.backup import backup, restore
from harness.arena.data_dir import DataDir
from harness.arena.logs import log_as
from harness.arena.problems import NotPossible
from harness.arena.processes import Settings
from harness.arena.store.database import address
from harness.cli.commands._arguments import count, number
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="?",
        choices=("run", "backup", "restore", "key", "worker-key"),
        default="run",
        help="default: run",
    )
    parser.add_argument("--file", type=Path, help="the file of the backup or worker key")
    parser.add_argument("--for", dest="name", metavar="NAME", help="the person who lost a key")
    parser.add_argument("--name", help="the machine that the worker key is for")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("arena-data"),
        metavar="DIR",
        help="the folder of the arena's data (default: %(default)s)",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port",
        type=number("a port is a number", 1, 65535),
        default=8040,
        help="the port to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--root",
        type=_root,
        default="",
        metavar="/PATH",
        help="the path under which the proxy serves the arena",
    )
    parser.add_argument(
        "--https", action="store_true", help="people use https; cookies are sent over https only"
    )
    parser.add_argument(
        "--proxy",
        type=_proxy,
        default="",
        metavar="ADDRESS",
        help="the proxy whose X-Forwarded-For is trusted",
    )
    parser.add_argument(
        "--database", metavar="URL", help="a PostgreSQL database (15 or newer), as its owner"
    )
    parser.add_argument(
        "--workers", type=count, metavar="N", help="default: one for each GPU; without a GPU, one"
    )
    parser.set_defaults(starts_workers=True)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    _check_options(arguments)
    data_dir, url = DataDir(arguments.data), _url(arguments.database)
    file, name = arguments.file, arguments.name

    def keep(key: str) -> None:
        if file is None:
            terminal.show(f"The key of {name} is {key}")
        else:
            _write_private(file, key)
            terminal.note(f"{file} holds the worker key of {name}: copy it to that machine")

    log_as("arena")
    try:
        match arguments.what:
            case "run":
                names = ("host", "port", "root", "proxy")
                chosen = {name: getattr(arguments, name) for name in names}
                settings = Settings(data=data_dir.folder, secure=arguments.https, **chosen)
                arena.serve(data_dir, url, settings, arguments.workers, terminal.show)
                terminal.note("The arena has ended; all submissions are kept.")
            case "backup":
                backup(data_dir, url, file)
                terminal.note(f"{file} contains the whole arena; let nobody else read it.")
            case "restore":
                restore(data_dir, url, file)
                terminal.note(f"{data_dir.folder} is the arena of {file} now; start it.")
            case "key":
                arena.new_key(data_dir, url, name, keep)
            case "worker-key":
                arena.new_worker_key(data_dir, url, name, keep)
    except NotPossible as error:
        raise UsageError(str(error)) from None
    return Exit.YES


def _check_options(arguments: argparse.Namespace) -> None:
    """Raises UsageError where an option is missing, or is of no use."""
    if arguments.file is None and arguments.what in ("backup", "restore"):
        raise UsageError(f"name the backup with --file: arena {arguments.what} --file FILE")
    if arguments.file is not None and arguments.what in ("run", "key"):
        raise UsageError(f"arena {arguments.what} takes no --file")
    if arguments.name is None and arguments.what in ("key", "worker-key"):
        option = "--for PERSON" if arguments.what == "key" else "--name MACHINE"
        raise UsageError(f"name the owner of the key: arena {arguments.what} {option}")


def _url(text: str | None) -> URL | None:
    if text is None:
        return None
    url = address(text)
    if url is None:
        raise UsageError("--database takes postgresql://OWNER:PASSWORD@HOST/DATABASE")
    return url


def _write_private(path: Path, key: str) -> None:
    """Raises UsageError where there is a file already."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"there is a file {path} already; name another") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"{key}\n")


def _proxy(text: str) -> str:
    try:
        ip_network(text or "::1")  # the default is checked, too
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a proxy is an address such as 127.0.0.1, not {text!r}"
        ) from None
    return text


def _root(text: str) -> str:
    if text and not (text.startswith("/") and not text.endswith("/")):
        raise argparse.ArgumentTypeError(f"write a path such as /arena, not {text!r}")
    return text
