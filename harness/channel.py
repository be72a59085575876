"""The wire between the judge and a worker: typed values as JSON, matrices beside them.

Nothing that arrives is executed or unpickled; a message is validated before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter

from harness.report import Value
from problem.cases import Matrix

T = TypeVar("T")


class _Header(Value):
    """The first part of a message; its matrices follow, in this order."""

    body: str
    shapes: tuple[tuple[int, int], ...]


def send(connection: Connection, body: Value, matrices: Sequence[Matrix] = ()) -> None:
    """Send a value and float32 matrices beside it. Raises OSError when the other side is gone."""
    header = _Header(
        body=body.model_dump_json(),
        shapes=tuple((matrix.shape[0], matrix.shape[1]) for matrix in matrices),
    )
    connection.send_bytes(header.model_dump_json().encode())
    for matrix in matrices:
        connection.send_bytes(_bytes(np.ascontiguousarray(matrix, np.float32)))


def receive(connection: Connection, kind: TypeAdapter[T]) -> tuple[T, list[Matrix]]:
    """Receive a value of this kind and its matrices. Raises EOFError or OSError when the other
    side is gone, pydantic.ValidationError for what is no such message."""
    header = _Header.model_validate_json(connection.recv_bytes())
    matrices: list[Matrix] = []
    for rows, columns in header.shapes:
        matrix: Matrix = np.empty((rows, columns), np.float32)
        connection.recv_bytes_into(_bytes(matrix))
        matrices.append(matrix)
    return kind.validate_json(header.body), matrices


def _bytes(matrix: Matrix) -> Any:
    """A contiguous matrix's memory."""
    return matrix.reshape(-1).view(np.uint8).data
