"""The folder that holds all of an arena: its database, its secrets, its rules."""

from __future__ import annotations

import secrets
from pathlib import Path

from harness.protocol.files import write_whole
from harness.protocol.report import Value

DEFAULT = Path("arena-data")


class Secrets(Value):
    """What only this arena knows; made once."""

    owner: str
    web: str
    worker: str
    """Passwords of the database's roles."""
    cookies: str
    """Signs the cookie that goes to an OpenID provider and back."""

    @classmethod
    def fresh(cls) -> Secrets:
        return cls(**{name: secrets.token_urlsafe(32) for name in cls.model_fields})


class Place:
    """An arena's folder."""

    def __init__(self, folder: Path) -> None:
        """Made where there is none."""
        self.folder = folder.resolve()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def database(self) -> Path:
        return self.folder / "database"

    @property
    def rules(self) -> Path:
        return self.folder / "rules.toml"

    @property
    def signing_key(self) -> Path:
        return self.folder / "signing-key.pem"

    @property
    def certificate(self) -> Path:
        """By which workers of other machines know this arena, with its key."""
        return self.folder / "certificate.pem"

    @property
    def running(self) -> Path:
        """Locked by the arena that runs here."""
        return self.folder / "running"

    def secrets(self) -> Secrets:
        """As the file has them; written when first asked for."""
        path = self.folder / "secrets.json"
        if not path.exists():
            write_whole(path, Secrets.fresh().model_dump_json(indent=2) + "\n")
        path.chmod(0o600)
        return Secrets.model_validate_json(path.read_text(encoding="utf-8"))
