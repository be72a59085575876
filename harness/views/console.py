"""A terminal that strangers cannot speak to: what they wrote is shown as words, never obeyed."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from harness.leaderboard.words import lines


class SafeConsole(Console):
    """A console on which only the judge itself moves the cursor or changes a colour.

    Names, messages, source lines and what a kernel prints come from submissions; their control
    characters are replaced.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(lines(segment.text), segment.style)
