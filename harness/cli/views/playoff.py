"""The screen of a play-off: the differences, and the order that follows."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.judge.stages.playoff import Difference, Ordered, PlayOff

_SAID = {
    Ordered.FASTER: "{first} is faster",
    Ordered.SLOWER: "{second} is faster",
    Ordered.EQUAL: "equal: they differ by less than 0.1 %",
    Ordered.UNKNOWN: "not known",
}


def screen(playoff: PlayOff) -> RenderableType:
    names = [player.name for player in playoff.players]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Kernels", overflow="fold")
    for heading in ("difference", "95 % interval", "sure"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Order")
    for each in playoff.differences:
        first, second = names[each.first], names[each.second]
        table.add_row(
            f"{first} against {second}",
            f"{each.percent:+.2f} %",
            f"{each.low:+.2f} to {each.high:+.2f} %",
            f"{100 * _sure(each):.1f} %",
            _SAID[each.ordered].format(first=first, second=second),
        )
    games = playoff.games
    on = f"{len(games)} GPUs" if len(games) > 1 else "one GPU, for which alone it holds"
    rounds = sum(len(game.rounds[0]) for game in games)
    return Group(
        table,
        Text(f"{playoff.gpu}: {rounds} rounds on {on}.", "dim"),
        *(
            Text(f"{place}  {name}", "bold")
            for place, name in sorted(zip(playoff.places(), names, strict=True))
        ),
    )


def _sure(difference: Difference) -> float:
    """Return the confidence in the direction of the difference."""
    return max(difference.confidence, 1 - difference.confidence)
