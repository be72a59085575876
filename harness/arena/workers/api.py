"""The messages between workers and the arena: JSON over HTTP, with a bearer token.

A worker joins and gets a session. It fetches tasks, each with an attempt's number that no one can
guess. Every message about a task carries this number, and counts only while that attempt holds the
grading. So a worker that counted as dead changes nothing when it comes back.
"""

from enum import StrEnum
from uuid import UUID

from pydantic import Field

from harness.arena.build import Build
from harness.arena.progress import GradingProgress
from harness.protocol.report import Value

PATH = "/api/v1/workers"
KEY_PREFIX = "worker_"
KEY_VARIABLE = "MATMUL_WORKER_KEY"

LEASE_SECONDS = 15.0
"""A worker without a heartbeat for this long counts as dead."""

POLL_SECONDS = 20.0
"""The time for which the arena keeps a request open while there is no task."""

MAX_MESSAGE = 16 << 20
"""The most bytes of a message; reports are the longest."""


class Join(Value):
    """A worker asks to grade for the arena."""

    worker: str = Field(min_length=1, max_length=200)
    """The GPU's UUID, or a name for a worker without a GPU."""
    supervisor: UUID
    """The process that started the worker. Its next worker for the same GPU replaces this one at
    once; another supervisor's waits for the lease."""
    name: str = Field(max_length=200)
    model: str | None = Field(max_length=200)
    """The GPU's model; None for a worker without a GPU."""
    build: Build


class Heartbeat(Value):
    """The worker is alive and holds these attempts."""

    attempts: dict[UUID, GradingProgress]


class HeartbeatAnswer(Value):
    """The arena's answer to a heartbeat."""

    leave: bool
    """The worker ends after the tasks in hand."""
    lost: tuple[UUID, ...]
    """Attempts that were cancelled, or given to another worker."""


class Task(Value):
    """One submission to grade."""

    attempt: UUID
    submission: str
    name: str
    author: str
    source: str
    quick: bool
    """Grade it by a sample of the cases."""


class Decision(StrEnum):
    """The arena's decision about a report."""

    COUNTED = "counted"
    RETRY = "retry"
    """The judge failed; the submission is graded again."""
    LOST = "lost"
    """The attempt was cancelled, or given to another worker."""
