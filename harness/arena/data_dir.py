"""The folder that holds all of an arena: its database, its secrets, its rules."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Value


class Secrets(Value):
    """The secrets of an arena: random strings, made once."""

    owner: str
    """The password of the database's owner, as whom the arena connects."""
    worker: str
    """The key of the arena's own workers."""
    cookies: str
    """Signs the cookie that goes to an OpenID provider and back."""

    @classmethod
    def fresh(cls) -> Secrets:
        return cls(**{name: secrets.token_urlsafe(32) for name in cls.model_fields})


class DataDir:
    """An arena's folder."""

    def __init__(self, folder: Path) -> None:
        """Name a folder, which need not exist. Raises UsageError where it is something else."""
        self.folder = folder.resolve()
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"{self.folder} is not a folder; name another one with --data")
        self.database = self.folder / "database"
        self.rules = self.folder / "rules.toml"
        self.signing_key = self.folder / "signing-key.pem"
        self.running = self.folder / "running"
        """The file that a running arena locks."""

    @property
    def holds_an_arena(self) -> bool:
        """Return whether the folder holds a complete database."""
        return (self.database / "PG_VERSION").is_file()

    def make(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def secrets(self) -> Secrets:
        """Read the secrets; write new ones where there are none."""
        self.make()
        path = self.folder / "secrets.json"
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        # An earlier arena's file has other secrets, too, and not all of these.
        wanted = {name: kept.get(name) or new for name, new in Secrets.fresh()}
        if wanted != kept:
            write_whole(path, json.dumps(wanted, indent=2) + "\n", 0o600)
        path.chmod(0o600)
        return Secrets.model_validate(wanted)

    def close_to_others(self, server_user: str | None = None) -> None:
        """Close the folder to other users. server_user: a user who must still pass through it."""
        with suppress(FileNotFoundError, PermissionError):  # root may have written it
            self.rules.chmod(0o600)
        if server_user is None:
            self.folder.chmod(0o700)
        else:
            shutil.chown(self.folder, os.geteuid(), server_user)
            self.folder.chmod(0o710)
