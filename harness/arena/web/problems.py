"""Errors as RFC 9457 writes them: what is wrong and what to do, in one sentence."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import JSONResponse


class Problem(Exception):
    """A request that cannot be served as it is."""

    def __init__(self, status: int, detail: str, *, retry_after: int | None = None) -> None:
        """detail: one sentence. retry_after: seconds until it is worth another try."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {} if retry_after is None else {"Retry-After": str(max(retry_after, 1))}

    def __reduce__(self) -> tuple[type[Problem], tuple[int, str], dict[str, object]]:
        return Problem, (self.status, self.detail), {"headers": self.headers}

    @property
    def title(self) -> str:
        return HTTPStatus(self.status).phrase

    def response(self) -> JSONResponse:
        return JSONResponse(
            {"title": self.title, "status": self.status, "detail": self.detail},
            self.status,
            self.headers,
            "application/problem+json",
        )


def sentence(text: object) -> str:
    """Return an error's text as a sentence."""
    said = str(text)
    return said[:1].upper() + said[1:] + ("" if said.endswith(".") else ".")


INVALID_KEY = "This key is not valid: it was revoked, has expired, or never existed."


def nothing_here() -> Problem:
    """Return the problem for an address that leads to nothing."""
    return Problem(404, "There is nothing at this address.")


def unknown_submission() -> Problem:
    """Return the problem for an unknown or private submission: its existence stays secret."""
    return Problem(404, "There is no such submission, or it is not yours to see.")


def database_unavailable(why: str = "") -> Problem:
    """Return the problem for a database that does not answer. why: its last message."""
    if "No space left" in why or "disk full" in why.lower():
        return Problem(503, DISK_FULL, retry_after=30)
    return Problem(
        503, "The database does not answer; nothing is lost, try again in a moment.", retry_after=2
    )


DISK_FULL = "The arena's disk is full: nothing can be kept until its organiser makes room."
