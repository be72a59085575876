"""The first start may be killed at any moment; keys that were lost can be had again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import URL, Engine, text

from harness.arena import postgres, running
from harness.arena.data_dir import DataDir
from harness.arena.postgres import Server
from harness.arena.processes import ServerFailed
from harness.arena.running import first_key
from harness.arena.store import people, workers
from harness.arena.store.people import Role
from harness.protocol.errors import UsageError


class Output:
    def __init__(self, fails: bool = False) -> None:
        self.lines: list[str] = []
        self._fails = fails

    def show(self, *lines: str) -> None:
        self.lines += lines
        if self._fails:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.lines.append(text)


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
    data_dir.close_to_others(server.user)
    assert data_dir.folder.stat().st_mode & 0o007 == 0, "nobody else looks into it"
    # What an interrupted first start of an earlier version has left.
    (data_dir.database / "pg_hba.conf").write_text("local all all trust\n")
    with pytest.raises(ServerFailed, match=r"delete .*database and start again"):
        Server(data_dir.database, "secret")


def test_the_first_key_is_shown_before_it_is_kept(engine: Engine) -> None:
    interrupted = Output(fails=True)
    with pytest.raises(KeyboardInterrupt):
        first_key(engine.url, interrupted)
    output = Output()
    assert first_key(engine.url, output)
    key = output.lines[0].split()[-1]
    with engine.begin() as connection:
        organiser = people.by_key(connection, key)
        assert organiser is not None and organiser.role is Role.ORGANISER
    assert not first_key(engine.url, output)


def command(what: str, owner: URL, folder: Path, name: str) -> Output:
    output = Output()
    text = owner.render_as_string(hide_password=False)
    arguments = SimpleNamespace(what=what, data=folder, database=text, name=name, file=None)
    running.run(arguments, output)  # type: ignore[arg-type]
    return output


def test_a_lost_key_is_made_again_on_the_machine(engine: Engine, folder: Path) -> None:
    with engine.begin() as connection:
        ada = people.add_person(connection, "Ada", Role.CONTESTANT)
    key = command("key", engine.url, folder, "ada").lines[0].split()[-1]
    with engine.begin() as connection:
        assert people.by_key(connection, key) == ada
    with pytest.raises(UsageError, match="there is no person called eve"):
        command("key", engine.url, folder, "eve")


def test_a_worker_key_is_made_on_the_machine(engine: Engine, folder: Path) -> None:
    key = command("worker-key", engine.url, folder, "lab").lines[0].split()[-1]
    with engine.begin() as connection:
        assert workers.machine_of(connection, key) is not None
        assert connection.scalar(text("SELECT count(*) FROM audit")) == 1
