"""Tests of the logs: each line is one JSON object, even if a kernel's name contains line ends."""

import json
import logging

from harness.arena.logs import JsonLines

HOSTILE = 'x\n{"level": "error", "message": "forged"}\r\x1b[2J'


def written(message: str, error: BaseException | None = None, **fields: object) -> str:
    logger = logging.Logger("test")
    raised = (type(error), error, error.__traceback__) if error else None
    record = logger.makeRecord("test", logging.INFO, "file", 1, message, (), raised, extra=fields)
    return JsonLines("cpu-0").format(record)


def test_a_hostile_name_forges_no_line() -> None:
    for line in (written(HOSTILE), written("x", name_of_kernel=HOSTILE)):
        assert line.isprintable() and HOSTILE in json.loads(line).values()
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        line = written("failed", error)
    assert line.isprintable() and "ValueError" in json.loads(line)["error"]
