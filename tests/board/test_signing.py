"""Keys: made whole beside their store, and of one kind."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from harness.board.signing import SigningKey, fits


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "board.key"
    first, again = SigningKey.at(path), SigningKey.at(path)
    assert first.public == again.public and path.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [path]
    signature = first.sign("a text")
    assert fits(signature, "a text") and not fits(signature, "another")


def test_a_key_is_made_beside_its_place_under_a_hidden_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another file system it could not become the key in one step."""
    asked: list[dict[str, Any]] = []
    make = tempfile.mkstemp

    def noted(**how: Any) -> tuple[int, str]:
        asked.append(how)
        return make(**how)

    monkeypatch.setattr(tempfile, "mkstemp", noted)
    SigningKey.at(tmp_path / "board.key")
    assert asked == [{"dir": tmp_path, "prefix": ".board.key."}]


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.key"
    path.write_bytes(
        X25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    with pytest.raises(ValueError, match=rf"^{path} holds no Ed25519 key$"):
        SigningKey.at(path)
