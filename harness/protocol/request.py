"""Requests to workers. A request names its answer; a Fault replaces it if something fails."""

from functools import cache
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np
from pydantic import (
    PlainSerializer,
    PlainValidator,
    PositiveFloat,
    SerializationInfo,
    TypeAdapter,
    ValidationInfo,
)

from harness.protocol.report import Finding, Place, Value
from problem.cases import Matrix

Answer_co = TypeVar("Answer_co", covariant=True)

ANSWER_SECONDS = 60.0
"""Time limit of requests that run no submission's code."""

GRACE_SECONDS = 5.0
"""The time beyond its own limit after which a worker is killed. A device that stops a launch by
itself knows where the launch was."""


class Fault(Value):
    """The request failed, or ended the worker."""

    cause: Literal[
        "memory", "deadlock", "trap", "launch-refused", "time-limit", "out-of-memory", "judge"
    ]
    message: str
    finding: Finding | None = None
    """Set for memory faults and deadlocks if the device knows the place."""
    at: Place | None = None
    signal: str | None = None
    """The signal that ended the worker, such as SIGSEGV."""
    details: str = ""
    """For the maintainers of the judge, if the cause is a defect of the judge."""
    printed: str = ""


class Done(Value):
    """The request was carried out."""


class Request(Value, Generic[Answer_co]):
    """A question to a worker. Its base names the answer: `class Run(Request[Finished])`.

    It is sent as JSON under the name of its class, followed by its matrices (`SentMatrix`).
    """

    needs_kernel: ClassVar[bool] = False
    """Whether a new worker must be given the kernel before this request."""

    seconds: PositiveFloat = ANSWER_SECONDS
    """The device stops a launch by itself after so many seconds, if it can."""

    @property
    def time_limit(self) -> float:
        """Return the seconds after which the worker is killed."""
        return self.seconds + GRACE_SECONDS


class AboutKernel(Value):
    """A mixin for requests about the kernel that was loaded last."""

    needs_kernel: ClassVar[bool] = True


class Process(Protocol):
    """A process that compiles, or runs kernels. A Fault ends it; the next request starts another,
    which is given the kernel again if it needs one."""

    def ask(self, request: Request[Answer_co]) -> Answer_co | Fault: ...

    def close(self) -> None:
        """End the process at once; the next request starts another."""


@cache
def answer_to(request: type[Request[Answer_co]]) -> TypeAdapter[Answer_co | Fault]:
    """Return the reader of answers to requests of this class."""
    for base in request.__mro__:
        arguments = getattr(base, "__pydantic_generic_metadata__", {}).get("args")
        if arguments:
            return TypeAdapter(arguments[0] | Fault)
    raise TypeError(f"{request.__name__} does not name its answer")


def request_named(name: str) -> type[Request[Any]]:
    todo: list[type[Request[Any]]] = [Request]
    while todo:
        kind = todo.pop()
        if kind.__name__ == name:
            return kind
        todo += kind.__subclasses__()
    raise ValueError(f"there is no request {name}")


def _put(matrix: Matrix, info: SerializationInfo) -> int:
    """Add the matrix to those that are sent, and return its number for the JSON."""
    matrices: list[Matrix] = info.context  # type: ignore[assignment]  # what channel.send passes
    matrices.append(matrix)
    return len(matrices) - 1


def _take(value: Any, info: ValidationInfo) -> Matrix:
    if isinstance(value, np.ndarray):
        return value
    matrices: list[Matrix] = info.context or []  # what channel.receive passes
    if not isinstance(value, int) or not 0 <= value < len(matrices):
        raise ValueError("no such matrix came with the message")
    return matrices[value]


SentMatrix = Annotated[Matrix, PlainValidator(_take), PlainSerializer(_put)]
"""A float32 matrix as a field of a request or an answer."""
