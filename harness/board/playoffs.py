"""The play-offs of a board: kept beside its store, signed by its key, and what they say of ranks.

Nobody's claim is a play-off: what the key of this board has not signed is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from pydantic import ValidationError

from harness.board.document import StoreError
from harness.board.edition import Edition
from harness.board.places import Decided, Order
from harness.judge.stages.playoff import Ordered, PlayOff, of_codes
from harness.protocol.report import Signature, Value

SURE = 0.999
"""More is not said: the tails of a handful of GPUs are not known so well."""

SUFFIX = ".playoffs.jsonl"
"""Of the file, beside the store's."""

_ORDERS = {
    Ordered.FASTER: Order.FASTER,
    Ordered.SLOWER: Order.SLOWER,
    Ordered.EQUAL: Order.UNKNOWN,
}
"""Equals share a place. What a play-off could not decide is left to the scores."""


class Kept(Value):
    """One line of the file."""

    playoff: PlayOff
    signature: Signature


def enter(playoff: PlayOff, path: Path, key: Path) -> None:
    """Raises OSError or ValueError where file or key cannot be used."""
    from harness.board.signing import SigningKey

    kept = Kept(playoff=playoff, signature=SigningKey.at(key).sign(_signed(playoff)))
    with path.open("a", encoding="utf-8") as file:
        file.write(kept.model_dump_json() + "\n")


def read(path: Path, key: Path | None) -> list[PlayOff]:
    """In order of time. Raises StoreError where a line is none, or is not this board's."""
    from harness.board.signing import SigningKey, fits

    if key is None or not (path.exists() and key.exists()):
        return []
    public = SigningKey.at(key).public
    found: list[PlayOff] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            kept = Kept.model_validate_json(line)
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            raise StoreError(f"{path}, line {number}, is no play-off: {why}; remove it.") from None
        if kept.signature.key != public or not fits(kept.signature, _signed(kept.playoff)):
            raise StoreError(
                f"{path}, line {number}, was not signed by this board's key; remove it."
            )
        found.append(kept.playoff)
    return sorted(found, key=lambda playoff: playoff.created)


def counting(
    played: Sequence[PlayOff], edition: Edition, gpu: str, gpus: Collection[str]
) -> list[PlayOff]:
    """Those on this GPU model that count for a board that has seen these GPUs. One on a single GPU
    speaks of that GPU alone, and counts where the board does the same."""
    return [
        playoff
        for playoff in played
        if playoff.gpu == gpu
        and (playoff.judge, playoff.cases) == (edition.judge, edition.cases)
        and (len(playoff.gpus) > 1 or playoff.gpus == set(gpus))
    ]


def decided(played: Sequence[PlayOff]) -> Decided:
    """What they say of every two programs; of the same two, the last."""
    return {
        pair: _ORDERS[ordered]
        for playoff in played
        for pair, ordered in of_codes(playoff).items()
        if ordered in _ORDERS
    }


def said(playoff: PlayOff) -> str:
    """What came of it, and how sure that is."""
    placed = sorted(zip(playoff.places(), (player.name for player in playoff.players), strict=True))
    order = ", ".join(f"{place}. {name}" for place, name in placed)
    found = f"A play-off on {playoff.created:%Y-%m-%d} found: {order}."
    ordered = [
        max(each.confidence, 1 - each.confidence)
        for each in playoff.differences
        if each.ordered in (Ordered.FASTER, Ordered.SLOWER)
    ]
    if not ordered:
        return found
    least = min(ordered)
    sure = "more than 99.9 %" if least > SURE else f"{100 * least:.1f} %"
    return f"{found} Whoever stands before another does so with {sure} confidence."


def _signed(playoff: PlayOff) -> str:
    return "play-off\0" + playoff.model_dump_json()
