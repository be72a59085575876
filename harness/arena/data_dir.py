"""The folder that holds all of an arena: its database, its secrets, its rules."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL, make_url

from harness.arena.postgres import address
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

    def __init__(self, folder: Path, database: URL | None = None) -> None:
        """Make the folder if it does not exist.

        database: one that is not the arena's own; by default that of the arena's last start.
        """
        self.folder = folder.resolve()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.database = self.folder / "database"
        self.rules = self.folder / "rules.toml"
        self.signing_key = self.folder / "signing-key.pem"
        self.running = self.folder / "running"
        """The file that a running arena locks."""
        self._address = self.folder / "database-address"
        kept = self._address.read_text("utf-8") if self._address.exists() else None
        self.external = database or (make_url(kept) if kept else None)
        """The address of a database that is not the arena's own."""

    @property
    def holds_an_arena(self) -> bool:
        """Return whether the arena has a complete database of its own, or an external one."""
        return self.external is not None or (self.database / "PG_VERSION").is_file()

    @property
    def url(self) -> URL:
        """The address of the arena's database, with its password."""
        return self.external or address(self.database, self.secrets().owner)

    def keep_address(self) -> None:
        """Keep the address of an external database for later commands."""
        if self.external is not None:
            text = self.external.render_as_string(hide_password=False)
            _write_private(self._address, text)

    def secrets(self) -> Secrets:
        """Read the secrets; write new ones where there are none."""
        path = self.folder / "secrets.json"
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        # An earlier arena's file has other secrets, too, and not all of these.
        wanted = {name: kept.get(name) or new for name, new in Secrets.fresh()}
        if wanted != kept:
            _write_private(path, json.dumps(wanted, indent=2) + "\n")
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


def _write_private(path: Path, text: str) -> None:
    write_whole(path, text)
    path.chmod(0o600)
