"""Errors as RFC 9457 writes them: what is wrong and what to do, in one sentence."""

import math
from http import HTTPStatus


class Problem(Exception):
    """A request that cannot be served as it is."""

    def __init__(self, status: int, reason: str, *, retry_after: float | None = None) -> None:
        """status: of the answer. retry_after: seconds until it is worth another try."""
        super().__init__(reason)
        self.status = status
        self.headers: dict[str, str] = {}
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(math.ceil(retry_after), 1))

    @property
    def title(self) -> str:
        return HTTPStatus(self.status).phrase

    @property
    def detail(self) -> str:
        """The reason as a sentence."""
        reason = str(self)
        return reason[:1].upper() + reason[1:] + ("" if reason.endswith(".") else ".")


class NotPossible(Problem):
    """A request that is wrong in itself, or that the state of the arena does not allow."""

    def __init__(self, reason: str) -> None:
        super().__init__(422, reason)


INVALID_KEY = "This key is not valid: it was revoked, has expired, or never existed."


def nothing_here() -> Problem:
    return Problem(404, "There is nothing at this address.")


def unknown_submission() -> Problem:
    """Return the problem for an unknown or private submission: its existence stays secret."""
    return Problem(404, "There is no such submission, or it is not yours to see.")


def database_unavailable(why: str = "") -> Problem:
    """Return the problem for a database that does not answer. why: its last message."""
    if "No space left" in why or "disk full" in why.lower():
        full = "The arena's disk is full: nothing can be kept until its organiser makes room."
        return Problem(503, full, retry_after=30)
    return Problem(
        503, "The database does not answer; nothing is lost, try again in a moment.", retry_after=2
    )
