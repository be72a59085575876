"""Matrices in messages: they are sent as bytes after the JSON, not in it."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import PlainSerializer, PlainValidator, SerializationInfo, ValidationInfo

from problem.cases import Matrix


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
