"""The API, version 1: submit, watch, read, cancel. Keys come as `Authorization: Bearer`."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from harness.arena import submitted
from harness.arena.problems import Problem, unknown_submission
from harness.arena.store import gradings, watching
from harness.arena.store.watching import Status
from harness.arena.web.boards import DATA, Boards, Form
from harness.arena.web.context import PRIVATE, Site, ThisVisitor, Visitor, now
from harness.board.document import Document
from harness.board.store import kept_document
from harness.protocol.report import Value

_ID = Path(pattern=r"^[0-9a-f]{16}$", description="of a submission")
SubmissionId = Annotated[str, _ID]
IdempotencyKey = Annotated[
    str | None,
    Header(
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="The same request with the same key is the same submission, however often "
        "it is sent.",
    ),
]


class ProblemDetails(Value):
    """An error, as RFC 9457 writes it."""

    title: str
    status: int
    detail: str


_PROBLEM = {"model": ProblemDetails, "content": {"application/problem+json": {}}}
_STATUSES = (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)
router = APIRouter(prefix="/api/v1", responses=dict.fromkeys(_STATUSES, _PROBLEM))

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "text/plain": {"schema": {"type": "string", "minLength": 1}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary", "minLength": 1}},
                }
            },
        },
    }
}


@router.post("/submissions", status_code=202, openapi_extra=_BODY)
async def submit(
    request: Request,
    response: Response,
    visitor: ThisVisitor,
    name: Annotated[str | None, Query(max_length=200)] = None,
    idempotency_key: IdempotencyKey = None,
) -> Status:
    """Submit a kernel file: as the field `file` of a form, or as the body, named by `name`.

    When this answers 202, the submission is kept and queued.
    """
    file_name, content = await uploaded(request)
    status = await run_in_threadpool(
        take_submission, visitor, name or file_name, content, idempotency_key
    )
    response.headers["Location"] = str(request.url_for("show", id=status.id).path)
    return status


def take_submission(
    visitor: Visitor, name: str, content: bytes, idempotency_key: str | None
) -> Status:
    """Keep and queue a submission. Raises Problem."""
    person, rules = visitor.signed_in, visitor.rules
    closed = None if person.organises else rules.closed(now(), person)
    submission = submitted.uploaded(name, content, person.name)
    with visitor.site.transaction() as connection:
        id = gradings.submit(
            connection, person.id, submission, rules.limits, idempotency_key, rules.gpu, closed
        )
        return watching.status(connection, [id])[id]


async def uploaded(request: Request) -> tuple[str, bytes]:
    """Return a file's name and content, from a form's field `file` or as the whole body."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        return "kernel.cu", await request.body()
    try:
        async with request.form(max_files=1, max_fields=8) as form:
            file = form.get("file")
            if isinstance(file, UploadFile):
                return file.filename or "kernel.cu", await file.read()
    except HTTPException as error:
        raise Problem(400, f"the form cannot be read: {error.detail}") from None
    raise Problem(422, "There is no file: send it as the field `file`, or as the body.")


@router.get("/submissions")
def mine(
    visitor: ThisVisitor,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> list[Status]:
    """Return one's own submissions, newest first."""
    person = visitor.signed_in
    with visitor.site.transaction() as connection:
        return watching.recent(connection, person=person.id, limit=limit, offset=offset)


@router.get("/submissions/{id}")
def show(visitor: ThisVisitor, id: SubmissionId) -> Status:
    """Return the status of a submission."""
    return readable(visitor, id)


@router.get("/submissions/{id}/report")
def report(visitor: ThisVisitor, id: SubmissionId) -> Response:
    """Return all that its grading found, as `harness/protocol/report.py` describes it."""
    found = document(visitor.site, readable(visitor, id))
    return Response(found.json, headers=PRIVATE, media_type="application/json")


@router.get("/submissions/{id}/source", response_class=PlainTextResponse)
def source(visitor: ThisVisitor, id: SubmissionId) -> PlainTextResponse:
    """Return the file as it was submitted."""
    readable(visitor, id)
    with visitor.site.transaction() as connection:
        _, _, text = gradings.submitted(connection, id)
    return PlainTextResponse(text, headers=PRIVATE)


@router.post("/submissions/{id}/cancel")
def cancel(visitor: ThisVisitor, id: SubmissionId) -> Status:
    """Cancel a submission of your own whose grading has not ended."""
    status = readable(visitor, id)
    if not visitor.owns(status):
        raise Problem(403, "Only the author may cancel a submission.")
    with visitor.site.transaction() as connection:
        if not gradings.cancel(connection, id):
            raise Problem(409, f"The submission is {status.state} already.")
        return watching.status(connection, [id])[id]


@router.get("/board")
async def show_board(request: Request, visitor: ThisVisitor) -> Response:
    """Return every ranking, as `leaderboard --json -` writes it."""
    boards: Boards = request.app.state.boards
    rendered = await boards.rendered(visitor, Form.DATA)
    return rendered.files[DATA].answer(request, "application/json")


def readable(visitor: Visitor, id: str) -> Status:
    """Return a submission's status, if the visitor may read it. Raises Problem."""
    with visitor.site.transaction() as connection:
        found = watching.status(connection, [id]).get(id)
    if found is None or not visitor.reads(found):
        raise unknown_submission()
    return visitor.shown(found)


def document(site: Site, status: Status) -> Document:
    """Return the report of a submission that is readable. Raises Problem."""
    if status.report is None:
        raise Problem(409, "The submission has no report yet.", retry_after=2)
    with site.transaction() as connection:
        found = kept_document(connection, status.report)
    assert found is not None  # a grading with a report refers to it
    return site.signed(found, status.author)
