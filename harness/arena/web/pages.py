"""The pages of a contestant: boards, entries, submitting, watching, comparing."""

import mimetypes
import secrets
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import StringConstraints
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from harness.arena import client
from harness.arena.problems import Problem, nothing_here, unknown_submission
from harness.arena.store import board, contest, watching
from harness.arena.store.people import Person
from harness.arena.store.watching import Status
from harness.arena.web import api
from harness.arena.web.boards import Boards, Form
from harness.arena.web.context import PRIVATE, ThisVisitor, Visitor, now
from harness.arena.web.guard import MAX_BODY, policy
from harness.arena.web.renderer import Call
from harness.arena.web.rendering import PER_PAGE, assets, page
from harness.board.compare import Comparison, compare
from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.site import entry_page
from harness.judge import figures
from harness.protocol.report import Verdict
from problem import starter
from problem.cases import RANKED

router = APIRouter(include_in_schema=False)

Compared = Annotated[str, StringConstraints(max_length=64)]
VERDICTS = {
    Verdict.ACCEPTED: "C is right in every case, and the kernel is safe.",
    Verdict.COMPILE_ERROR: "The file does not compile. The page shows the first errors.",
    Verdict.WRONG_ANSWER: "C is wrong. The page shows which blocks are, and the worst elements.",
    Verdict.MEMORY_ERROR: "The kernel accesses memory outside its arrays or at a misaligned "
    "address, or reads memory that was not written.",
    Verdict.RACE: "Threads access the same memory, at least one writes, and nothing orders them; "
    "or some running threads do not reach a barrier.",
    Verdict.RUNTIME_ERROR: "The device stopped the kernel, or refused its launch.",
    Verdict.TIME_LIMIT: "The kernel or its compilation takes too long.",
    Verdict.RULE_VIOLATION: "The kernel changes its inputs, is wrong when it is timed, or has "
    "times that are not possible.",
    Verdict.UNSUPPORTED: "This device cannot run the kernel, which is no error of the kernel.",
    Verdict.JUDGE_ERROR: "The judge failed. This says nothing about the kernel and does not count.",
}
CHARTS = {"Content-Security-Policy": policy("'self' 'unsafe-inline'")}
"""The chart library sets styles as attributes."""


@router.get("/")
async def root(
    request: Request, visitor: ThisVisitor, whole: Annotated[bool, Query(alias="all")] = False
) -> Response:
    return await shown_board(request, visitor, "index", whole)


@router.get("/{name}.html")
async def shown_board(
    request: Request,
    visitor: ThisVisitor,
    name: str,
    whole: Annotated[bool, Query(alias="all")] = False,
) -> Response:
    """Show a GPU's board, or all runs."""
    boards: Boards = request.app.state.boards
    rendered = await boards.rendered(visitor, Form.WHOLE_PAGES if whole else Form.PAGES)
    file = rendered.files.get(f"{name}.html")
    if file is None:
        raise nothing_here()
    shown = file.answer(request, "text/html")
    shown.headers.update(CHARTS)
    return shown


@router.get("/assets/{name}")
def asset(request: Request, name: str) -> Response:
    """Send a script or a style sheet, which the browser caches."""
    file = assets().get(name)
    if file is None:
        raise nothing_here()
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return file.answer(request, kind, "public, max-age=3600, stale-while-revalidate=86400")


# ------------------------------------------------------------------------------------- entries


@router.get("/entries/{short}.{kind}")
def shown_entry(visitor: ThisVisitor, short: str, kind: str) -> Response:
    """Send a result's page, report or source, where the visitor may read it."""
    if kind not in ("html", "json", "cu"):
        raise nothing_here()
    document = _document(visitor, short)
    if kind == "json":
        return Response(document.json, headers=PRIVATE, media_type="application/json")
    if kind == "cu":
        return PlainTextResponse(document.report.submission.source, headers=PRIVATE)
    entry = Entry.of(document.report, short)
    answer = page(visitor, "entry.html", **entry_page(entry, document.report))
    answer.headers.update(CHARTS)
    return answer


def _document(visitor: Visitor, id: str) -> Document:
    """Return a report by a submission's id, or the beginning of an entry's. Raises Problem."""
    if len(id) < 16:
        raise unknown_submission()
    with visitor.site.transaction() as connection:
        submission = id if watching.status(connection, [id]) else None
        submission = submission or board.submission_of(connection, id)
        if submission is None and visitor.reads_imported:
            imported = board.imported(connection, id)
            if imported is not None:
                return imported
    return api.document(visitor.site, api.readable(visitor, submission or ""))


@router.get("/compare")
async def compared(
    request: Request, visitor: ThisVisitor, of: Annotated[list[Compared] | None, Query()] = None
) -> Response:
    """Show two submissions side by side, compared in another process."""
    chosen = [id.strip() for id in of or () if id.strip()]
    comparison = problem = None
    if len(chosen) == 2:
        a, b = [await run_in_threadpool(_document, visitor, id) for id in chosen]
        call: Call = request.app.state.compare
        comparison = await call(partial(compare, a, b))
    elif len(chosen) > 2:
        problem = f"You chose {len(chosen)} submissions; two can be compared."
    return await run_in_threadpool(_comparison, visitor, chosen, comparison, problem)


def _comparison(
    visitor: Visitor, chosen: list[str], comparison: Comparison | None, problem: str | None
) -> Response:
    known: list[Status] = []
    if visitor.person is not None:
        with visitor.site.transaction() as connection:
            known = watching.recent(connection, person=visitor.person.id, limit=PER_PAGE)
    return page(
        visitor,
        "compare.html",
        status=422 if problem else 200,
        of=[*chosen[:2], "", ""],
        known=[status for status in known if status.report],
        comparison=comparison,
        problem=problem,
    )


# ---------------------------------------------------------------------------------- submitting


@router.get("/submit")
def submit_form(request: Request, visitor: ThisVisitor) -> Response:
    return _submit_page(request, visitor)


@router.post("/submit")
async def submit(request: Request, visitor: ThisVisitor) -> Response:
    """Submit a file that was chosen or dropped, or text that was pasted."""
    async with request.form(max_files=1, max_fields=8, max_part_size=MAX_BODY) as form:
        pasted = str(form.get("pasted", ""))
        name = str(form.get("name", "")) or "kernel"
        file = form.get("file")
        content = pasted.encode()
        chosen = not isinstance(file, str) and file is not None and bool(file.filename)
        if chosen and isinstance(file, UploadFile):
            name, content = file.filename or name, await file.read()
    try:
        if not chosen and not pasted:
            raise Problem(422, "There is no file: choose one, drop one or paste its text.")
        once = str(form.get("once", ""))[:200] or None
        status = await run_in_threadpool(api.take_submission, visitor, name, content, once)
    except Problem as problem:
        answer = await run_in_threadpool(
            _submit_page, request, visitor, problem=problem, pasted=pasted
        )
        answer.headers.update(problem.headers)
        return answer
    return visitor.site.to(f"submissions/{status.id}")


def _submit_page(
    request: Request, visitor: Visitor, *, problem: Problem | None = None, pasted: str = ""
) -> HTMLResponse:
    person, rules = visitor.signed_in, visitor.rules
    return page(
        visitor,
        "submit.html",
        here="submit",
        status=problem.status if problem else 200,
        problem=problem,
        pasted=pasted.replace("\r\n", "\n"),
        once=secrets.token_hex(16),
        closed=rules.closed(now(), person),
        deadline=rules.deadline(person),
        rules=rules,
        starter=starter.text(),
        address=str(request.base_url).rstrip("/"),
    )


@router.get("/problem")
def statement(visitor: ThisVisitor) -> Response:
    """Show the problem statement and the rules of the contest."""
    return page(
        visitor,
        "statement.html",
        here="problem",
        ranked=RANKED.shape,
        verdicts=VERDICTS.items(),
        rules=visitor.rules,
        starter=starter.text(),
    )


@router.get("/submit.py")
def submit_script(request: Request) -> Response:
    """Send the script that submits from a terminal."""
    text = Path(client.__file__).read_text(encoding="utf-8")
    address = str(request.base_url).rstrip("/")
    text = text.replace('ARENA = ""', f"ARENA = {address!r}")
    return PlainTextResponse(text, media_type="text/x-python")


@router.get("/who")
def who(visitor: ThisVisitor) -> Response:
    """Return the visitor's name, and the author whom boards name for it, for pages that are the
    same for everybody."""
    name = visitor.person.name if visitor.person else None
    found = {"name": name, "author": visitor.shown_as or name, "organises": visitor.organises}
    return JSONResponse(found, headers=PRIVATE)


@router.get("/mine")
def mine(visitor: ThisVisitor, offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0) -> Response:
    return history_page(visitor, visitor.signed_in, offset, here="mine")


def history_page(visitor: Visitor, person: Person, offset: int, here: str = "") -> Response:
    """Return the page of a person's submissions, newest first."""
    with visitor.site.transaction() as connection:
        found = watching.recent(connection, person=person.id, limit=PER_PAGE + 1, offset=offset)
        count, accepted, best = watching.totals(connection, person.id)
    return page(
        visitor,
        "mine.html",
        here=here,
        author=None if here else person.name,
        submissions=found[:PER_PAGE],
        changes={newer.id: (older.id, _change(older, newer)) for newer, older in pairwise(found)},
        count=count,
        accepted=accepted,
        best=best,
        offset=offset,
        more=len(found) > PER_PAGE,
    )


def _change(older: Status, newer: Status) -> str:
    """Return the change in a few words; empty where there is nothing to compare yet."""
    if older.report is None or newer.report is None:
        return ""
    if older.sha256 == newer.sha256:
        return "same file"
    if older.score and newer.score:
        return figures.change(older.score, newer.score)
    return "source"


@router.get("/submissions/{id}")
def watched(visitor: ThisVisitor, id: api.SubmissionId) -> Response:
    """Show a submission: its progress, and then its result."""
    status = api.readable(visitor, id)
    owns = visitor.owns(status)
    with visitor.site.transaction() as connection:
        before = watching.previous(connection, status) if owns else None
    values: dict[str, Any] = {"report": None, "entry": None}
    if status.report is not None:
        report = api.document(visitor.site, status).report
        values = entry_page(Entry.of(report, status.report), report)
    shown = page(
        visitor,
        "submission.html",
        submission=status,
        **values,
        files=f"{visitor.site.root}/entries/",
        owns=owns,
        before=before,
        organises=visitor.organises,
        ended=status.state.final,
    )
    if status.report is not None:
        shown.headers.update(CHARTS)
    return shown


@router.post("/submissions/{id}/{what}")
def change(visitor: ThisVisitor, id: api.SubmissionId, what: str) -> Response:
    """Cancel or withdraw a submission of one's own."""
    status = api.readable(visitor, id)
    if what == "cancel":
        api.cancel(visitor, id)
    elif what == "withdraw" and visitor.owns(status):
        with visitor.site.transaction() as connection:
            contest.withdraw(connection, visitor.signed_in, id)
    else:
        raise unknown_submission()
    return visitor.site.to(f"submissions/{id}")
