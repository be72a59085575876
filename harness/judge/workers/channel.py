"""The connection between the judge and a worker: typed values as JSON, followed by matrices.

Messages are validated, and nothing in them is executed or unpickled. A matrix is read directly into
its memory: at the ranked size each further copy costs half a second.
"""

import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field, TypeAdapter

from harness.protocol.report import Value
from problem.cases import Matrix

T = TypeVar("T")

_MAX_BYTES = 512 << 20
"""The largest value, as JSON."""

_MAX_MATRICES = 64

_Size = Annotated[int, Field(ge=1, le=65_536)]


class _Header(Value):
    """The first part of a message. The elements of its matrices follow in this order."""

    name: str
    """The name of the value's class."""
    body: str
    shapes: Annotated[tuple[tuple[_Size, _Size], ...], Field(max_length=_MAX_MATRICES)]


def send(connection: Connection, value: Value) -> None:
    """Send a value and the matrices in it. Raises OSError if the other side has ended."""
    matrices: list[Matrix] = []
    body = value.model_dump_json(context=matrices)
    header = _Header(
        name=type(value).__name__,
        body=body,
        shapes=tuple((matrix.shape[0], matrix.shape[1]) for matrix in matrices),
    )
    connection.send_bytes(header.model_dump_json().encode())
    for matrix in matrices:
        left = _bytes(np.ascontiguousarray(matrix, np.float32))
        while left:
            left = left[os.write(connection.fileno(), left) :]


def receive(connection: Connection, kind: Callable[[str], TypeAdapter[T]]) -> T:
    """Receive a value and the matrices in it. kind: returns the reader for a class name.

    Raises EOFError or OSError if the other side has ended, ValueError for an invalid message.
    """
    header = _Header.model_validate_json(connection.recv_bytes(_MAX_BYTES))
    matrices: list[Matrix] = []
    for rows, columns in header.shapes:
        matrix: Matrix = np.empty((rows, columns), np.float32)
        missing = _bytes(matrix)
        while missing:
            count = os.readv(connection.fileno(), [missing])
            if count == 0:
                raise EOFError
            missing = missing[count:]
        matrices.append(matrix)
    return kind(header.name).validate_json(header.body, context=matrices)


def _bytes(matrix: Matrix) -> memoryview:
    """Return the memory of a contiguous matrix."""
    return matrix.reshape(-1).view(np.uint8).data
