"""Tests of the end of the web service while people watch."""

import time

import httpx
import pytest

from harness.arena.web.context import Site
from tests.arena.conftest import served
from tests.waiting import PATIENCE


def test_an_open_stream_does_not_delay_the_end(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with httpx.Client(timeout=PATIENCE) as client:
        with served(site, shutdown_seconds=int(PATIENCE)) as address:
            request = client.build_request("GET", f"{address}/live/board")
            lines = client.send(request, stream=True).iter_lines()
            assert next(lines) == "event: board"
            began = time.monotonic()
        assert time.monotonic() - began < PATIENCE / 4
        with pytest.raises(httpx.RemoteProtocolError):  # browsers and submit.py connect again
            for _ in lines:
                pass
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
