"""Checks before any work, so that the result of a long grading is not lost at its end."""

import os
import tempfile
from argparse import Namespace
from pathlib import Path

from harness.board.keys import SigningKey
from harness.cli.commands._stores import Address, check_place, open_store
from harness.protocol.errors import UsageError
from harness.protocol.files import cache_directory


def check(arguments: Namespace) -> None:
    """Raise UsageError if this command could not keep its result, or could not start its work.

    It goes by the names of a command's options: json, out and site are written to, and store is
    entered with --submit. A command sets starts_workers, and out_is_folder, as defaults.
    """
    read = [*getattr(arguments, "files", ()), getattr(arguments, "file", None)]
    sources = {os.path.realpath(each) for each in read if each is not None}
    for name in ("json", "out", "site"):
        path = getattr(arguments, name, None)
        if isinstance(path, Path) and str(path) != "-":
            if name == "json" and os.path.realpath(path) in sources:
                raise UsageError(f"--json {path} would replace the file that is read.")
            _check_output(path, f"--{name}", is_folder=_names_a_folder(arguments, name))
    store = getattr(arguments, "store", None)
    if isinstance(store, Address):
        check_place(store)
        submits = getattr(arguments, "submit", arguments.command == "regrade")
        if submits:
            _check_store(store)
        if submits or (arguments.command == "grade" and arguments.json is not None):
            _check_key(arguments.key or store.key, may_be_made=submits)
    if getattr(arguments, "starts_workers", False) and getattr(arguments, "what", "run") == "run":
        _check_folders()


def _names_a_folder(arguments: Namespace, name: str) -> bool:
    """Return whether this option names a folder, as `grade --json` does for several files."""
    if name == "site":
        return True
    if name == "out":
        return bool(getattr(arguments, "out_is_folder", False))
    files = getattr(arguments, "files", ())
    return arguments.command == "grade" and (len(files) != 1 or bool(arguments.json.is_dir()))


def _check_output(path: Path, option: str, is_folder: bool) -> None:
    if is_folder:
        nearest = next(each for each in (path, *path.absolute().parents) if each.exists())
        if not nearest.is_dir():
            raise UsageError(f"{option} {path}: {nearest} is not a folder.")
        if not _writable(nearest):
            raise UsageError(f"{option} {path}: you may not write to {nearest}.")
        return
    if path.is_dir():
        raise UsageError(f"{option}: {path} is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        instead = "; - is standard output" if option == "--json" else ""
        raise UsageError(f"{option}: {path} is not a regular file{instead}.")
    if not path.parent.is_dir():
        raise UsageError(f"{option}: there is no folder {path.parent} to write {path.name} to.")
    if not _writable(path.parent):
        raise UsageError(f"{option}: you may not write to {path.parent}.")


def _check_store(store: Address) -> None:
    if store.is_url or store.path.exists():
        with open_store(store):
            return
    if not (store.path.parent.is_dir() and _writable(store.path.parent)):
        raise UsageError(f"--store: {store} cannot be made; choose a folder that you may write to.")


def _check_key(path: Path | None, may_be_made: bool) -> None:
    if path is None:
        return
    if path.exists():
        SigningKey.at(path)
    elif may_be_made and not (path.parent.is_dir() and _writable(path.parent)):
        raise UsageError(f"--key: {path} cannot be made; choose a folder that you may write to.")


def _writable(folder: Path) -> bool:
    """Return whether a file can be created in a folder; permissions alone do not tell that."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _check_folders() -> None:
    try:
        temporary = tempfile.gettempdir()
    except FileNotFoundError:
        raise UsageError(
            "There is no folder for temporary files; set TMPDIR to one that you may write to."
        ) from None
    if not temporary.isascii():
        raise UsageError(
            f"The path of the folder for temporary files, {temporary}, has characters outside "
            "ASCII, which CUDA's compiler cannot read; set TMPDIR to another folder."
        )
    try:
        cache = cache_directory()
        usable = _writable(cache)
    except OSError as error:
        cache, usable = Path(error.filename or "~/.cache"), False
    if not usable:
        raise UsageError(
            f"Compiled kernels cannot be kept in {cache}; set XDG_CACHE_HOME to a folder that you "
            "may write to."
        )
