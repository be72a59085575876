"""A request names the answer that it gets; a Fault says instead what went wrong."""

from __future__ import annotations

from functools import cache
from typing import Any, Generic, Literal, TypeVar

from pydantic import PositiveFloat, TypeAdapter

from harness.protocol.report import Finding, Place, Value

Answer_co = TypeVar("Answer_co", covariant=True)

ANSWER_SECONDS = 60.0
"""Time limit of requests that run no submission's code."""

GRACE_SECONDS = 5.0
"""How much longer than its own limit a worker may take before it is killed: a device that can
stop a launch by itself knows where it was."""


class Fault(Value):
    """What was asked for did not come to its end, or the worker did not survive it."""

    kind: Literal["fault"] = "fault"
    cause: Literal[
        "memory", "deadlock", "trap", "launch-refused", "time-limit", "out-of-memory", "judge"
    ]
    message: str
    finding: Finding | None = None
    """Set for memory faults and deadlocks where the device knows the place."""
    at: Place | None = None
    signal: str | None = None
    """The signal that ended the worker, such as SIGSEGV."""
    details: str = ""
    """For the maintainers of the judge, where the cause is a defect of it."""
    printed: str = ""


class Done(Value):
    """It was done, and there is nothing more to say of it."""

    kind: Literal["done"] = "done"


class Request(Value, Generic[Answer_co]):
    """A question to a worker. Its base names the answer: `class Run(DeviceRequest[Finished])`.

    It is sent as JSON under the name of its class; matrices travel beside (matrix.py).
    """

    @property
    def time_limit(self) -> float:
        """Seconds after which the worker is killed."""
        return ANSWER_SECONDS

    @property
    def needs_kernel(self) -> bool:
        """Whether a worker that has replaced another must be given the kernel before this."""
        return False


class Limited(Value):
    """What a request is too that names its own time limit."""

    seconds: PositiveFloat
    """After these the device stops by itself, if it can."""

    @property
    def time_limit(self) -> float:
        return self.seconds + GRACE_SECONDS


class Launching(Limited):
    """What a request is too that launches the kernel last loaded."""

    @property
    def needs_kernel(self) -> bool:
        return True


@cache
def answer_to(request: type[Request[Answer_co]]) -> TypeAdapter[Answer_co | Fault]:
    """Reads the answer to requests of this class."""
    for base in request.__mro__:
        arguments = getattr(base, "__pydantic_generic_metadata__", {}).get("args")
        if arguments:
            return TypeAdapter(arguments[0] | Fault)
    raise TypeError(f"{request.__name__} does not name its answer")


def request_named(name: str) -> type[Request[Any]]:
    """The class of a request that has arrived."""
    todo: list[type[Request[Any]]] = [Request]
    while todo:
        kind = todo.pop()
        if kind.__name__ == name:
            return kind
        todo += kind.__subclasses__()
    raise ValueError(f"there is no request {name}")
