"""Matrices in messages: they travel beside the JSON, as bytes, not in it."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import PlainSerializer, PlainValidator, SerializationInfo, ValidationInfo

from problem.cases import Matrix


def _put(matrix: Matrix, info: SerializationInfo) -> int:
    """Leave the matrix with the sender of the message; its number stands in the JSON."""
    beside: list[Matrix] = info.context  # type: ignore[assignment]  # what channel.send passes
    beside.append(matrix)
    return len(beside) - 1


def _take(value: Any, info: ValidationInfo) -> Matrix:
    if isinstance(value, np.ndarray):
        return value
    beside: list[Matrix] = info.context or []  # what channel.receive passes
    if not isinstance(value, int) or not 0 <= value < len(beside):
        raise ValueError("no such matrix came with the message")
    return beside[value]


SentMatrix = Annotated[Matrix, PlainValidator(_take), PlainSerializer(_put)]
"""A float32 matrix as a field of a request or an answer."""
