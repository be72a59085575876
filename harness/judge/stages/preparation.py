"""What a launch of verification needs beforehand: its inputs, and what C should be.

That takes the processor seconds and the GPU nothing, so it is done while the GPU does something
else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from problem.cases import Case, Matrix
from problem.reference import Expected


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case as it is launched. expected: None where only parts of C will be looked at."""

    case: Case
    A: Matrix
    B: Matrix
    expected: Expected | None


def prepared(case: Case, seed: int, whole: bool) -> Prepared:
    A, B = case.draw(seed)
    return Prepared(case, A, B, Expected.of(A, B, tolerance=case.tolerance) if whole else None)


class Preparation:
    """Cases in their order, each made ready in a thread of its own."""

    def __init__(self, cases: Sequence[Case], seed: int, whole: bool, ahead: int) -> None:
        """whole: all of the last case's C will be looked at. ahead: so many cases are ready, or
        being made so, before the one at hand is done with."""
        self.cases = cases
        self._seed = seed
        self._whole = whole
        self._left = deque(cases)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="preparation")
        self._begun: deque[Future[Prepared]] = deque()
        for _ in range(ahead):
            self._begin_next()

    def __iter__(self) -> Iterator[Prepared]:
        while self._begun:
            self._begin_next()
            yield self._begun.popleft().result()

    def close(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin_next(self) -> None:
        if self._left:
            case = self._left.popleft()
            whole = self._whole or bool(self._left)
            self._begun.append(self._thread.submit(prepared, case, self._seed, whole))
