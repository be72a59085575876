"""What a worker says of the queue's tasks for which nobody waits."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest
from procrastinate.exceptions import ConnectorException
from psycopg import OperationalError

from harness.arena.worker import _nobody_waited


def said_of(error: Exception, caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """What is logged of a task that ends so."""

    async def fail() -> None:
        raise error

    async def forget() -> None:
        asyncio.get_running_loop().set_exception_handler(_nobody_waited)
        task = asyncio.create_task(fail())
        await asyncio.sleep(0)
        del task
        gc.collect()

    with caplog.at_level(logging.INFO):
        asyncio.run(forget())
    return [(record.levelno, record.getMessage()) for record in caplog.records]


@pytest.mark.parametrize("kind", [ConnectorException, OperationalError])
def test_a_database_that_went_away_is_one_sentence(
    kind: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    said = said_of(kind("it hung up"), caplog)
    assert said == [(logging.WARNING, "the queue does not answer: it hung up")]


def test_a_defect_is_said_whole(caplog: pytest.LogCaptureFixture) -> None:
    ((level, message),) = said_of(ZeroDivisionError("by nothing"), caplog)
    assert level == logging.ERROR and message.startswith("Task exception was never retrieved")
