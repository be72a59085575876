"""Settings of migrations, in the one form in which they mean what they say."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import create_engine

from harness.leaderboard import schema


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
