"""The progress of a grading, which its worker writes and its watchers read."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Self

from pydantic import AwareDatetime, Field, NonNegativeInt, StringConstraints, ValidationError

from harness.protocol.report import Stage, Value

MAX_FOUND = 12
"""The most sentences of one stage; the report has all."""

MAX_SENTENCE = 300
MAX_STAGES = 20

Sentence = Annotated[str, StringConstraints(max_length=MAX_SENTENCE)]


class StageProgress(Value):
    """One stage that has begun."""

    stage: Stage
    began: AwareDatetime
    total: NonNegativeInt | None = None
    """The number of steps, where it is known."""
    steps: NonNegativeInt = 0
    """The number of steps that have begun."""
    found: tuple[Sentence, ...] = Field(default=(), max_length=MAX_FOUND)
    """The findings so far, a sentence each."""


class GradingProgress(Value):
    """One attempt, from its beginning to now."""

    stages: tuple[StageProgress, ...] = Field(default=(), max_length=MAX_STAGES)
    step: Sentence | None = None

    @classmethod
    def read(cls, kept: object) -> Self:
        """Read it from the database; what another version wrote counts as no progress."""
        try:
            return cls.model_validate(kept or {})
        except ValidationError:
            return cls()

    def began(self, stage: Stage, total: int | None) -> Self:
        begun = StageProgress(stage=stage, began=datetime.now(UTC), total=total)
        stages = (*self.stages, begun)[-MAX_STAGES:]
        return self.model_copy(update={"stages": stages, "step": None})

    def stepped(self, text: str) -> Self:
        """Return this progress with one more step of the stage that began last."""
        changed = self.model_copy(update={"step": text[:MAX_SENTENCE]})
        last = self.stages[-1]
        return changed._with_last(last.model_copy(update={"steps": last.steps + 1}))

    def having_found(self, sentences: Iterable[str]) -> Self:
        last = self.stages[-1]
        all_found = islice((*last.found, *sentences), MAX_FOUND)
        found = tuple(sentence[:MAX_SENTENCE] for sentence in all_found)
        return self._with_last(last.model_copy(update={"found": found}))

    def _with_last(self, stage: StageProgress) -> Self:
        return self.model_copy(update={"stages": (*self.stages[:-1], stage)})
