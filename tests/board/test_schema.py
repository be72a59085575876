"""Settings of migrations, in the one form in which they mean what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.config import Config
from sqlalchemy import create_engine

from harness.board import schema


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """Alembic's settings take a per cent sign for the beginning of a name."""
    assert schema._quoted(Path("/50%/board")) == "/50%%/board"
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        config = schema._config(connection, tmp_path / "50%", tmp_path / "b:c d")
    folders = [schema.MIGRATIONS / "versions", tmp_path / "50%", tmp_path / "b:c d"]
    assert config.get_version_locations_list() == [str(folder) for folder in folders]
    assert config.get_main_option("script_location") == str(schema.MIGRATIONS)
    assert config.attributes["connection"] is connection


def test_other_histories_are_upgraded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[str], str]] = []

    def upgrade(config: Config, to: str) -> None:
        asked.append(((config.get_version_locations_list() or [])[1:], to))

    monkeypatch.setattr("alembic.command.upgrade", upgrade)
    with create_engine("sqlite://").connect() as connection:
        schema.upgrade(connection, "heads", tmp_path)
        schema.upgrade(connection)
    assert asked == [([str(tmp_path)], "heads"), ([], "board@head")]
