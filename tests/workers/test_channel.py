"""The wire: what is sent arrives, and what does not agree with its announcement is refused."""

from __future__ import annotations

import json
import os
import struct
from multiprocessing import Pipe

import numpy as np
import pytest
from pydantic import TypeAdapter

from harness.protocol.device import Finished, Run
from harness.protocol.matrix import SentMatrix
from harness.protocol.request import answer_to
from harness.report import Value
from harness.workers import channel
from problem.cases import Shape

FINISHED = TypeAdapter(Finished)


class Many(Value):
    """More matrices than a grading ever sends."""

    matrices: tuple[SentMatrix, ...]


def framed(body: bytes) -> bytes:
    return struct.pack("!i", len(body)) + body


def test_a_request_arrives_with_its_matrices_in_their_places() -> None:
    A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 4), np.float32)
    ours, theirs = Pipe()
    channel.send(ours, Run(shape=Shape(2, 3, 4), A=A, B=B, seconds=7))
    found = channel.receive(theirs, lambda name: TypeAdapter({"Run": Run}[name]))
    assert np.array_equal(found.A, A) and np.array_equal(found.B, B)
    assert (found.shape, found.seconds, found.blocks) == (Shape(2, 3, 4), 7, None)


def test_the_answer_to_a_request_is_read_as_the_kind_that_it_names() -> None:
    read = answer_to(Run).validate_json('{"kind":"finished","seconds":1,"C":0}', context=[FLOATS])
    assert isinstance(read, Finished) and read.C is FLOATS


FLOATS = np.zeros((5, 5), np.float32)


@pytest.mark.parametrize("sent", [0, 4, 99, 104, 1000])
def test_a_matrix_of_another_length_than_announced_is_refused(sent: int) -> None:
    ours, theirs = Pipe()
    body = json.dumps({"seconds": 1, "C": 0})
    header = json.dumps({"name": "Finished", "body": body, "shapes": [[5, 5]]})
    os.write(theirs.fileno(), framed(header.encode()) + framed(bytes(sent)))
    with pytest.raises(ValueError, match="5×5 elements were announced"):
        channel.receive(ours, lambda _: FINISHED)


@pytest.mark.parametrize("number", [1, -1, 2])
def test_a_matrix_that_did_not_come_is_missed(number: int) -> None:
    ours, theirs = Pipe()
    body = json.dumps({"seconds": 1, "C": number})
    header = json.dumps({"name": "Finished", "body": body, "shapes": [[1, 1]]})
    os.write(theirs.fileno(), framed(header.encode()) + framed(bytes(4)))
    with pytest.raises(ValueError, match="no such matrix"):
        channel.receive(ours, lambda _: FINISHED)


def test_too_many_matrices_are_refused() -> None:
    ours, _ = Pipe()
    with pytest.raises(ValueError, match="at most"):
        channel.send(ours, Many(matrices=(FLOATS,) * 1000))
