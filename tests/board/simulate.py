"""Simulates contests with known truth on GPUs that differ: how often is a rank wrong?

    python3 -m tests.board.simulate --contests 30 --seed 1 --out reports/ranks-simulated

writes reports/ranks-simulated.json and a table of it. Ranks, intervals and play-offs are those of
the judge itself; only times are drawn. GPUs differ by the deviation that was measured
(spread.PRIOR), for each kernel by a share of it of its own, from none to all: so a kernel on CUDA
cores did not differ between two GPUs, and one near the power limit by 1.1 %. Rounds scatter as in
the committed reports.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.ranking import Board, rank
from harness.board.spread import PRIOR
from harness.judge.estimates import NORMAL
from harness.judge.stages.playoff import EQUAL, Game, Player, PlayOff, differences, settled
from harness.judge.stages.score import ratios
from harness.protocol.report import Badge, DeviceInfo, Report, Round, RoundInputs
from tests.board import factory

REPORTS = Path(__file__).resolve().parent.parent.parent / "reports"
NOISE_OF = "h100/33_wgmma_two_phase.json"
"""Whose rounds scatter as those of the contestants."""

KERNELS, GAP = 60, 0.01
"""Contestants, and by how much neighbours differ in the mean, as a share: the best of a contest."""

ROUNDS = 30
PLACES, MOST_PLAYERS = 3, 10
"""A contest names these places; so many at most play for them."""

REFERENCES = 4
"""Kernels that every GPU grades, where there is a reference set."""


@dataclass(frozen=True)
class Kernel:
    name: str
    truth: float
    """The logarithm of its score on the mean GPU of the model."""
    sensitivity: float
    """To how good a GPU is: from 0 to 1."""


@dataclass
class Tally:
    """What was right and wrong in all contests under one rule."""

    contests: int = 0
    ordered: int = 0
    """Pairs of kernels of which the board says who is faster."""
    wrong: int = 0
    """Of those, the other is, by 0.1 % or more."""
    neighbours: int = 0
    """Pairs that follow each other in truth, and differ by 0.1 % or more."""
    neighbours_ordered: int = 0
    neighbours_wrong: int = 0
    contests_with_a_wrong_place: int = 0
    """Among the first places: somebody stands before one who is faster."""
    best_is_first: int = 0
    """The fastest kernel has rank 1, alone or not."""
    best_is_first_alone: int = 0


@dataclass
class Scenario:
    """So many GPUs, with a reference set graded on each of them or not; and by rule what came."""

    gpus: int
    references: bool
    tallies: dict[str, Tally]
    gpus_played: float = 0.0
    """In the mean, of a play-off."""
    places_in_order: float = 0.0
    """Share of contests whose first places nobody shares after the play-off."""


class Contest:
    def __init__(self, generator: random.Random, gpus: int, noise: float) -> None:
        self.generator = generator
        self.noise = noise
        self.gpus = {f"GPU-{n}": generator.gauss(0, PRIOR.deviation) for n in range(gpus)}
        truth = math.log(5.0)
        self.kernels: list[Kernel] = []
        for number in range(KERNELS):
            self.kernels.append(Kernel(f"{number:03}", truth, generator.random()))
            truth -= generator.expovariate(1 / GAP)
        self.model = factory.entry(cores=Badge.TENSOR_CORES)

    def graded(self, kernel: Kernel, gpu: str) -> Entry:
        deviation = 1.253 * self.noise / math.sqrt(ROUNDS)  # of a median
        score = math.exp(self.on(kernel, gpu) + self.generator.gauss(0, deviation))
        reach = NORMAL * deviation
        number = int(kernel.name) if kernel.name.isdecimal() else KERNELS
        return self.model._replace(
            id=f"{kernel.name} {gpu}",
            name=kernel.name,
            author=kernel.name,
            sha256=f"{number:064x}",
            code=f"{number:064x}" if kernel.name.isdecimal() else kernel.name,
            uuid=gpu,
            score=score,
            low=score * math.exp(-reach),
            high=score * math.exp(reach),
        )

    def on(self, kernel: Kernel, gpu: str) -> float:
        return kernel.truth + kernel.sensitivity * self.gpus[gpu]

    def play_off(self, players: Sequence[Kernel]) -> PlayOff:
        games: list[Game] = []
        for gpu in self.gpus:
            games.append(self._game(players, gpu))
            if len(games) > 1 and settled(differences(games)):
                break
        edition = Edition.current()
        return PlayOff.model_construct(  # not validated: it is long, and ours
            judge=edition.judge,
            cases=edition.cases,
            created=factory.START,
            players=tuple(
                Player(name=each.name, author=None, sha256=code, code=code)
                for each in players
                for code in [f"{int(each.name):064x}"]
            ),
            games=tuple(games),
            differences=differences(games),
        )

    def _game(self, players: Sequence[Kernel], gpu: str) -> Game:
        def launch(kernel: Kernel, inputs: RoundInputs) -> Round:
            ms = math.exp(-self.on(kernel, gpu) + self.generator.gauss(0, self.noise))
            return Round.model_construct(
                kernel_ms=ms, baseline_ms=1.0, inputs=inputs, dropped=False, kernel_first=True
            )

        kinds = [self.generator.choice([*RoundInputs]) for _ in range(2 * ROUNDS)]
        return Game.model_construct(
            device=DeviceInfo.model_construct(name=self.model.device, uuid=gpu),
            rounds=tuple(tuple(launch(kernel, kind) for kind in kinds) for kernel in players),
        )


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--contests", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args(words)
    noise = _measured_noise()
    scenarios = [
        _simulate(chosen.contests, random.Random(f"{chosen.seed} {gpus}"), gpus, references, noise)
        for gpus in (2, 4, 8)
        for references in (False, True)
    ]
    record = {
        "contests": chosen.contests,
        "seed": chosen.seed,
        "kernels": KERNELS,
        "mean_difference_of_neighbours": GAP,
        "deviation_between_gpus": PRIOR.deviation,
        "deviation_of_a_round": noise,
        "rounds": ROUNDS,
        "scenarios": [asdict(each) for each in scenarios],
    }
    chosen.out.with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n")
    chosen.out.with_suffix(".md").write_text(_table(chosen.contests, noise, scenarios))


def _measured_noise() -> float:
    report = Report.model_validate_json((REPORTS / NOISE_OF).read_text())
    assert report.measurement is not None
    return statistics.stdev(map(math.log, ratios(report.measurement.rounds)))


def _simulate(
    contests: int, generator: random.Random, gpus: int, references: bool, noise: float
) -> Scenario:
    tallies = {rule: Tally() for rule in RULES}
    found = Scenario(gpus, references, tallies)
    played: list[int] = []
    for _ in range(contests):
        contest = Contest(generator, gpus, noise)
        names = list(contest.gpus)
        entries = [contest.graded(each, generator.choice(names)) for each in contest.kernels]
        ranks = {each.name: place for place, each in enumerate(_by_score(entries), start=1)}
        _count(tallies[RULES[0]], contest, ranks)
        alike = [entry._replace(uuid="GPU-0") for entry in entries]
        _count(tallies[RULES[1]], contest, _ranks(_board(alike)))
        if references:
            entries += [
                contest.graded(Kernel(f"reference {n}", -1 - n, n / (REFERENCES - 1)), gpu)
                for n in range(REFERENCES)
                for gpu in names
            ]
        before = _board(entries)
        _count(tallies[RULES[2]], contest, _ranks(before))
        by_name = {each.name: each for each in contest.kernels}
        tied = [row for row in before.rows if (row.rank or 0) <= PLACES]
        players = [by_name[row.entry.name] for row in tied[:MOST_PLAYERS]]
        playoff = contest.play_off(players)
        played.append(len(playoff.games))
        after = _ranks(_board(entries, playoff))
        _count(tallies[RULES[3]], contest, after)
        first = sorted(place for place in after.values() if place <= PLACES)
        found.places_in_order += (first == list(range(1, PLACES + 1))) / contests
    found.gpus_played = statistics.fmean(played)
    return found


RULES = (
    "by score alone",
    "by the interval of one run",
    "with the spread between GPUs",
    "after a play-off",
)


def _by_score(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: -(entry.score or 0))


def _board(entries: Sequence[Entry], *played: PlayOff) -> Board:
    (board,) = rank(entries, Edition.current(), played=played)
    return board


def _ranks(board: Board) -> dict[str, int]:
    return {row.entry.name: row.rank or 0 for row in board.rows if row.entry.name.isdecimal()}


def _count(tally: Tally, contest: Contest, ranks: dict[str, int]) -> None:
    kernels = contest.kernels
    tally.contests += 1
    wrong_place = False
    for i, j in combinations(range(len(kernels)), 2):
        faster, slower = kernels[i], kernels[j]
        ordered = ranks[faster.name] != ranks[slower.name]
        wrong = ranks[faster.name] > ranks[slower.name] and faster.truth - slower.truth >= EQUAL
        tally.ordered += ordered
        tally.wrong += wrong
        wrong_place |= wrong and ranks[slower.name] <= PLACES
        if j == i + 1 and faster.truth - slower.truth >= EQUAL:
            tally.neighbours += 1
            tally.neighbours_ordered += ordered
            tally.neighbours_wrong += wrong
    tally.contests_with_a_wrong_place += wrong_place
    first = [name for name, place in ranks.items() if place == 1]
    tally.best_is_first += kernels[0].name in first
    tally.best_is_first_alone += first == [kernels[0].name]


def _table(contests: int, noise: float, scenarios: Sequence[Scenario]) -> str:
    lines = [
        "# How often a rank is wrong",
        "",
        f"{contests} simulated contests a line, of {KERNELS} kernels whose neighbours differ by "
        f"{100 * GAP:g} % in the mean, each graded once on one of the GPUs; these differ by "
        f"{100 * PRIOR.deviation:.2g} % (a standard deviation) for the kernel that feels it most. "
        f"A round scatters by {100 * noise:.2g} %. Wrong: somebody stands before one who is faster "
        f"by 0.1 % or more. The play-off is among those who share the first {PLACES} places, at "
        f"most {MOST_PLAYERS} kernels.",
        "",
        "| GPUs | reference set | rule | pairs ordered | of them wrong | neighbours ordered "
        "| of them wrong | contests with a wrong place among the first | best is first | alone |",
        "|---:|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    pairs = KERNELS * (KERNELS - 1) // 2
    for scenario in scenarios:
        for rule, tally in scenario.tallies.items():
            n = tally.contests
            cells = [
                str(scenario.gpus),
                f"{REFERENCES} kernels" if scenario.references else "none",
                rule,
                _percent(tally.ordered, n * pairs),
                _percent(tally.wrong, tally.ordered),
                _percent(tally.neighbours_ordered, tally.neighbours),
                _percent(tally.neighbours_wrong, tally.neighbours_ordered),
                _percent(tally.contests_with_a_wrong_place, n),
                _percent(tally.best_is_first, n),
                _percent(tally.best_is_first_alone, n),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| GPUs | reference set | GPUs that a play-off took | first places in order |"]
    lines.append("|---:|---|---:|---:|")
    lines += [
        f"| {each.gpus} | {f'{REFERENCES} kernels' if each.references else 'none'} "
        f"| {each.gpus_played:.1f} | {_percent(each.places_in_order, 1)} |"
        for each in scenarios
    ]
    return "\n".join(lines) + "\n"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


if __name__ == "__main__":
    main()
