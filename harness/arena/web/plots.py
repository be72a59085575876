"""Plots that the server draws: what each GPU scored over time, as coordinates for an SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from harness.arena.store.checkups import Judged

WIDTH, HEIGHT = 640, 160
LEFT, RIGHT, TOP, BOTTOM = 56, 8, 8, 24
LEAST_SPAN = 0.02
"""Of the vertical axis: noise of a tenth of a percent must not look like a mountain."""


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The scores of one kernel on one GPU."""

    kernel: str
    points: list[Point]
    ticks: list[Tick]
    begins: datetime
    ends: datetime

    @property
    def line(self) -> str:
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


def plots(checkups: Sequence[Judged]) -> list[Plot]:
    """One for each kernel that has a score. checkups: newest first."""
    scores: dict[str, list[tuple[datetime, float]]] = {}
    for each in reversed(checkups):
        for known in each.found.known:
            if known.score is not None:
                scores.setdefault(known.name, []).append((each.at, known.score.ratio))
    return [_plot(kernel, found) for kernel, found in scores.items()]


def _plot(kernel: str, scores: Sequence[tuple[datetime, float]]) -> Plot:
    values = [score for _, score in scores]
    middle = median(values)
    half = max(LEAST_SPAN * middle / 2, max(abs(value - middle) for value in values) * 1.1)
    begins, ends = scores[0][0], scores[-1][0]
    seconds = (ends - begins).total_seconds() or 1.0

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (middle + half - value) / (2 * half)

    def x(at: datetime) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - begins).total_seconds() / seconds

    return Plot(
        kernel=kernel,
        points=[
            Point(x(at), y(value), f"{at:%Y-%m-%d %H:%M} UTC: {value:.4f}") for at, value in scores
        ],
        ticks=[Tick(y(value), f"{value:.3f}") for value in (middle + half, middle, middle - half)],
        begins=begins,
        ends=ends,
    )
