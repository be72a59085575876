"""Tests of the boards, which a separate process makes once for all visitors.

They are served even if that process was killed or the database cannot be reached.
"""

import asyncio
import gzip
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, event, text

from harness.arena.problems import Problem
from harness.arena.store import workers
from harness.arena.store.database import open_engine
from harness.arena.web.app import application
from harness.arena.web.boards import Boards, Form, Rendered, Variant, render, render_as
from harness.arena.web.context import Site, Visitor
from harness.arena.web.renderer import OtherProcess
from tests.arena.submitting import FakeWorker, graded
from tests.waiting import PATIENCE, eventually


def renderers() -> list[psutil.Process]:
    """Return the child processes that render."""
    children = psutil.Process().children()
    return [each for each in children if "anyio.to_process" in each.cmdline()]


def test_a_frozen_board_says_since_when_in_utc(client: TestClient, rules: Path) -> None:
    rules.write_text("frozen_from = 2020-01-01T12:00:00+02:00\n")
    assert ">2020-01-01 10:00 UTC</time>, until the organiser thaws it" in client.get("/").text


@pytest.fixture
def result(worker: FakeWorker) -> Callable[[float], None]:
    """A function that adds a result of a new kernel."""

    def add(score: float) -> None:
        worker.submit(f"kernel {score}")
        worker.grade(score)

    return add


def test_boards_are_made_once_and_again_for_each_change(
    site: Site, result: Callable[[float], None]
) -> None:
    made = []

    async def noted(variant: Variant) -> Rendered:
        made.append(variant)
        return await asyncio.to_thread(render, site, variant)

    boards = Boards(site, noted)
    result(1.0)

    async def visits() -> list[Rendered]:
        return await asyncio.gather(
            *(boards.rendered(Visitor(site, None), Form.PAGES) for _ in range(20))
        )

    async def scenario() -> tuple[list[Rendered], list[Rendered]]:
        before = [*await visits(), *await visits()]
        assert len(made) == 1
        await asyncio.to_thread(result, 2.0)
        return before, await visits()

    before, after = asyncio.run(scenario())
    assert len(made) == 2
    assert not {each.version for each in before} & {each.version for each in after}
    assert before[0].files["index.html"].tag != after[0].files["index.html"].tag


def test_a_page_says_what_version_of_the_board_it_shows(
    site: Site, result: Callable[[float], None]
) -> None:
    empty = render(site, Variant(Form.PAGES, site.rules_file.stamp, None))
    result(1.0)
    ranked = render(site, Variant(Form.PAGES, site.rules_file.stamp, None))
    assert empty.version != ranked.version
    for rendered in (empty, ranked):
        for file in rendered.files.values():
            said = f'<meta name="board-version" content="{rendered.version}">'
            assert said.encode() in gzip.decompress(file.compressed)


def test_a_change_that_is_not_committed_has_no_version_yet(site: Site, worker: FakeWorker) -> None:
    """A board that was made shortly before a change is committed must be made again."""
    variant = Variant(Form.PAGES, site.rules_file.stamp, None)
    worker.submit()
    task = worker.take()

    def finish(connection: Connection) -> Rendered:
        workers.finish(connection, worker.machine, task.attempt, graded(task, 1.0))
        connection.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))  # as at the commit
        return render(site, variant)

    before, after = worker.do(finish), render(site, variant)
    assert b"Nothing is ranked yet" in gzip.decompress(before.files["index.html"].compressed)
    assert before.version < after.version


def test_a_large_board_stays_until_the_next_is_ready(
    site: Site, result: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.arena.web.boards.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("harness.arena.web.boards.CHECK_INTERVAL_FACTOR", 0.0)
    boards = Boards(site)
    result(1.0)

    async def scenario() -> None:
        first = await boards.rendered(Visitor(site, None), Form.PAGES)
        await asyncio.to_thread(result, 2.0)
        assert await boards.rendered(Visitor(site, None), Form.PAGES) is first
        while await boards.rendered(Visitor(site, None), Form.PAGES) is first:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_the_board_stays_while_the_database_is_away(
    site: Site, result: Callable[[float], None]
) -> None:
    site = replace(site, engine=open_engine(site.engine.url))
    boards = Boards(site)
    result(1.0)

    def refused(*_: object) -> None:
        raise psycopg.OperationalError("connection refused")

    async def scenario() -> None:
        kept = await boards.rendered(Visitor(site, None), Form.PAGES)
        event.listen(site.engine, "do_connect", refused)
        site.engine.dispose()
        assert await boards.rendered(Visitor(site, None), Form.PAGES) is kept
        with pytest.raises(Problem, match="nothing is lost"):
            await boards.rendered(Visitor(site, None), Form.DATA)

    asyncio.run(scenario())


def test_an_unchanged_board_is_answered_as_not_modified(
    site: Site, result: Callable[[float], None]
) -> None:
    with TestClient(application(site)) as client:
        for path in ("/", "/runs.html", "/api/v1/board"):
            first = client.get(path)
            assert "Cookie" in first.headers["vary"], "organisers see another one"
            known = {"If-None-Match": first.headers["etag"]}
            same = client.get(path, headers=known)
            assert (same.status_code, same.content) == (304, b"")
            result(float(len(path)))
            changed = client.get(path, headers=known)
            assert changed.status_code == 200 and changed.headers["etag"] != first.headers["etag"]
        plain = client.get("/", headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers and plain.text == client.get("/").text


def test_another_process_makes_the_same_boards_and_may_be_killed(
    site: Site, result: Callable[[float], None]
) -> None:
    before = renderers()
    result(1.0)
    database = site.engine.url.render_as_string(hide_password=False)
    there = partial(render_as, site.settings.model_dump_json(), database)

    async def scenario() -> None:
        other = OtherProcess()
        for form in (Form.PAGES, Form.DATA):
            variant = Variant(form, site.rules_file.stamp, None)
            assert await other.call(partial(there, variant), PATIENCE) == render(site, variant)
            (process,) = [each for each in renderers() if each not in before]
            process.kill()

    asyncio.run(scenario())
    ended = "the process has ended with its parent"
    eventually(lambda: set(renderers()) <= set(before), ended)
