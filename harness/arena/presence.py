"""A worker's presence in an arena: it joins, shows signs of life, and learns what it is to do."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from types import TracebackType
from typing import Self

from harness.arena.processes import End
from harness.arena.store.membership import (
    LEASE_SECONDS,
    REVOKED,
    Duty,
    Held,
    Membership,
    Refused,
    clock_warning,
)

log = logging.getLogger(__name__)

BEAT_SECONDS = 2.0


class Presence:
    """Beats in a thread of its own while its worker does something else."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.duty = Duty.REST
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="presence", daemon=True)

    async def __aenter__(self) -> Self:
        """Raises Refused or Held."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._join)
        self._thread.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.leave)

    async def changed(self, duty: Duty) -> None:
        """Wait until the duty is another."""
        while self.duty is duty:
            self._changed.clear()
            await self._changed.wait()

    def leave(self) -> None:
        self._over.set()
        self.membership.leave()

    def _join(self) -> None:
        """Whoever held the GPU may have died: its lease is waited for, once."""
        deadline = time.monotonic() + LEASE_SECONDS + BEAT_SECONDS
        while True:
            try:
                self.membership.join()
                break
            except Held as held:
                if time.monotonic() > deadline:
                    raise
                log.info("waiting: %s", held)
                time.sleep(BEAT_SECONDS)
        warning = clock_warning(self.membership.clock_ahead)
        if warning:
            log.warning("%s", warning)
        log.info("joined")

    def _beat(self) -> None:
        while not self._over.is_set():
            try:
                duty = self.membership.beat()
                if duty is None:
                    log.warning("this worker was taken for dead; it joins again")
                    self._join()
                    continue
            except (Refused, Held) as error:
                log.error("refused: %s", error)
                os._exit(End.REFUSED)
            except REVOKED:
                log.error("refused: this machine's key was revoked")
                os._exit(End.REFUSED)
            if duty is not self.duty:
                log.info("duty: %s", duty)
                self.duty = duty
                assert self._loop is not None
                self._loop.call_soon_threadsafe(self._changed.set)
            self._over.wait(BEAT_SECONDS)
