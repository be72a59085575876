"""Messages between judge and worker arrive whole, and incomplete ones are refused."""

import json
import os
import struct
import threading
from multiprocessing import Pipe

import numpy as np
import pytest
from pydantic import TypeAdapter

from harness.judge.workers import channel
from harness.protocol.device import Finished, Run
from harness.protocol.request import answer_to
from problem.cases import Shape
from tests.requests import inputs_of

FINISHED = TypeAdapter(Finished)


def test_a_request_arrives_with_its_matrices_in_their_places() -> None:
    A, B = np.arange(6, dtype=np.float32).reshape(3, 2).T, np.ones((3, 4), np.float32)
    ours, theirs = Pipe()
    channel.send(ours, Run(inputs=inputs_of(Shape(2, 3, 4), A, B), seconds=7))
    found = channel.receive(theirs, lambda name: TypeAdapter({"Run": Run}[name]))
    assert all(map(np.array_equal, found.inputs.matrices, (A, B)))
    assert (found.inputs.shape, found.seconds, found.inputs.blocks) == (Shape(2, 3, 4), 7, None)
    read = answer_to(Run).validate_json('{"seconds":1,"output":0}', context=[FLOATS])
    assert isinstance(read, Finished) and read.output is FLOATS


FLOATS = np.zeros((5, 5), np.float32)


def announced(*shape: int, output: int = 0) -> bytes:
    """Return an answer without the elements of its matrix."""
    body = json.dumps({"seconds": 1, "output": output})
    header = json.dumps({"name": "Finished", "body": body, "shapes": [shape]}).encode()
    return struct.pack("!i", len(header)) + header


def test_messages_with_matrices_are_read_one_by_one() -> None:
    ours, theirs = Pipe()
    os.write(theirs.fileno(), announced(5, 5) + FLOATS.tobytes() + announced(1, 1) + bytes(4))
    shapes = [channel.receive(ours, lambda _: FINISHED).output.shape for _ in range(2)]
    assert shapes == [(5, 5), (1, 1)]


def test_a_matrix_that_comes_in_many_parts_is_put_together() -> None:
    ours, theirs = Pipe()
    C = np.arange(3000 * 1000, dtype=np.float32).reshape(3000, 1000)
    sending = threading.Thread(target=channel.send, args=(theirs, Finished(seconds=1, output=C)))
    sending.start()
    assert np.array_equal(channel.receive(ours, lambda _: FINISHED).output, C)
    sending.join()


@pytest.mark.parametrize("number", [1, -1, 2])
def test_a_matrix_that_did_not_come_is_missed(number: int) -> None:
    ours, theirs = Pipe()
    os.write(theirs.fileno(), announced(1, 1, output=number) + bytes(4))
    with pytest.raises(ValueError, match="no such matrix"):
        channel.receive(ours, lambda _: FINISHED)
