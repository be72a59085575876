"""The first start may be killed at any moment; keys that were lost can be had again."""

import socket
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from harness.arena import arena, postgres
from harness.arena.data_dir import DataDir
from harness.arena.postgres import Server
from harness.arena.problems import NotPossible
from harness.arena.store import people, workers
from harness.arena.store.people import Role
from harness.cli.main import main
from harness.judge.workers.processes import PREFIX
from tests.arena.submitting import free_port


def test_a_first_start_that_is_killed_is_done_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = DataDir(folder / "data")

    class Killed:
        """The initdb of a start that is killed in the middle."""

        def __init__(self, folder: Path, **_: object) -> None:
            self._folder = folder

        def ensure_pgdata_inited(self) -> None:
            (self._folder / "PG_VERSION").touch()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(postgres, "get_server", Killed)
        with pytest.raises(KeyboardInterrupt):
            Server(data_dir.database, "secret")
    assert not data_dir.holds_an_arena
    server = Server(data_dir.database, "secret")
    server.keep_up()
    server.stop()
    data_dir.secrets()
    assert (data_dir.folder / "secrets.json").stat().st_mode & 0o777 == 0o600
    data_dir.rules.touch(0o644)
    data_dir.close_to_others(server.user)
    assert data_dir.rules.stat().st_mode & 0o777 == 0o600, "it may have a provider's secret"
    assert data_dir.folder.stat().st_mode & 0o007 == 0, "nobody else looks into it"


def test_what_prevents_an_arena_is_said_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(arena, "database", None)  # nothing is started
    data_dir, port = DataDir(tmp_path), str(free_port())
    command = ["arena", "--data", str(tmp_path), "--port", port]
    with socket.create_server(("127.0.0.1", int(port))):
        assert main(command) == 2
    data_dir.rules.write_text("ends = soon")
    assert main(command) == 2
    with arena.alone_in(data_dir):
        assert main(command) == 2
    port_taken, rules, running = capsys.readouterr().err.splitlines()
    assert "cannot listen on 127.0.0.1" in port_taken and "is no TOML" in rules
    assert "an arena runs in" in running and "stop it first" in running


def test_a_long_path_has_its_socket_in_another_folder(folder: Path) -> None:
    database = folder / ("long" * 25)
    server = Server(database, "secret")
    server.keep_up()
    sockets = postgres.socket_folder(database)
    assert sockets.is_dir() and not sockets.name.startswith(PREFIX), "a judge removes those"
    server.stop()
    assert not sockets.exists()


def test_the_first_key_is_shown_before_it_is_kept(engine: Engine) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        arena.first_key(engine.url, interrupted)
    shown: list[str] = []
    assert arena.first_key(engine.url, shown.append)
    key = shown[0].split()[-1]
    with engine.begin() as connection:
        organiser = people.by_key(connection, key)
        assert organiser is not None and organiser.role is Role.ORGANISER
    assert not arena.first_key(engine.url, shown.append)


def test_keys_are_made_on_the_machine(engine: Engine, folder: Path) -> None:
    with engine.begin() as connection:
        ada = people.add_person(connection, "Ada", Role.CONTESTANT)
    kept: list[str] = []
    arena.new_key(DataDir(folder), engine.url, "ada", kept.append)
    arena.new_worker_key(DataDir(folder), engine.url, "lab", kept.append)
    with pytest.raises(NotPossible, match="there is no person called eve"):
        arena.new_key(DataDir(folder), engine.url, "eve", kept.append)
    with engine.begin() as connection:
        assert people.by_key(connection, kept[0]) == ada
        assert workers.machine_of(connection, kept[1]) is not None
        assert connection.scalar(text("SELECT count(*) FROM audit")) == 2


def test_the_file_of_a_key_is_new_and_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(arena, "new_worker_key", lambda *how: how[-1]("worker_1"))
    command, file = ["arena", "worker-key", "--name", "lab"], tmp_path / "lab.key"
    for code, said in ((0, "holds the worker key of lab"), (2, "there is a file")):
        assert main([*command, "--file", str(file)]) == code
        shown = "".join(capsys.readouterr())
        assert said in shown and "worker_1" not in shown
    assert file.stat().st_mode & 0o777 == 0o600 and file.read_text() == "worker_1\n"
    assert main(command) == 0 and "The key of lab is worker_1" in capsys.readouterr().out
