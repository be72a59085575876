"""Which runs count, where reports of one kernel disagree.

A report is this board's own, signed by its key because its judge wrote it, or it is a claim. Both
name an author and a code; whoever claims can write any name into a claim.

* What the own judge has seen, nobody else's claim can change: where there is an own judgement of a
  source, claims about that source do not count, and neither do claims about the same author's code,
  for better or for worse.
* The latest own judgement of a code decides. A rejection takes back what was accepted before it,
  of the same author's code, and of that very source under any other author's name.
* A claimed rejection takes nothing away: who forges one in another's name would remove a row. It
  speaks only of its own author's claims, and then both are doubtful: they are disputed, which is
  shown and not ranked until the own judge has graded the source.

A judgement concerns the boards of the GPU model that it was made on; wrong answers, memory errors
and races that the CPU device found concern every board, since they do not depend on the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.protocol.report import Verdict

_NO_JUDGEMENT = frozenset((Verdict.JUDGE_ERROR, Verdict.UNSUPPORTED))
_ON_ANY_DEVICE = frozenset((Verdict.WRONG_ANSWER, Verdict.MEMORY_ERROR, Verdict.RACE))


@dataclass(frozen=True, slots=True)
class Run:
    """An accepted run that counts."""

    entry: Entry
    disputed: bool


def weigh(entries: Sequence[Entry], gpu: str, edition: Edition) -> list[Run]:
    """The accepted runs on this GPU model that count, in the order of the entries. Judgements are
    those of this edition, while runs may be of any."""
    judged = _Judged()
    for entry in entries:
        if _judges(entry, gpu, edition):
            judged.add(entry)
    return [
        Run(entry, disputed=not entry.own and judged.denied(entry))
        for entry in entries
        if entry.accepted and entry.device == gpu and not judged.refuted(entry)
    ]


def _judges(entry: Entry, gpu: str, edition: Edition) -> bool:
    """Whether the entry is a final judgement that concerns this GPU's board."""
    if (entry.judge, entry.cases) != (edition.judge, edition.cases):
        return False
    if entry.accepted:
        return entry.device == gpu and not entry.quick
    if entry.verdict in _NO_JUDGEMENT:
        return False
    return entry.device == gpu or (not entry.on_gpu and entry.verdict in _ON_ANY_DEVICE)


class _Judged:
    """What was judged, and when it was last rejected: "" where it never was."""

    def __init__(self) -> None:
        self._own_codes: dict[tuple[str, str], str] = {}
        self._own_sources: dict[str, str] = {}
        self._claimed_codes: dict[tuple[str, str], str] = {}

    def add(self, entry: Entry) -> None:
        rejected = "" if entry.accepted else entry.created
        code = (entry.author, entry.code)
        if entry.own:
            self._own_codes[code] = max(rejected, self._own_codes.get(code, ""))
            source = entry.sha256
            self._own_sources[source] = max(rejected, self._own_sources.get(source, ""))
        else:
            self._claimed_codes[code] = max(rejected, self._claimed_codes.get(code, ""))

    def refuted(self, entry: Entry) -> bool:
        """Whether the own judge knows better."""
        rejections = [
            self._own_codes.get((entry.author, entry.code)),
            self._own_sources.get(entry.sha256),
        ]
        known = [rejected for rejected in rejections if rejected is not None]
        return any(not entry.own or entry.created <= rejected for rejected in known)

    def denied(self, entry: Entry) -> bool:
        """Whether a claim says that it was rejected since."""
        return entry.created <= self._claimed_codes.get((entry.author, entry.code), "")
