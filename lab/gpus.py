"""Measures what several GPUs of one machine do.

    python3 -m lab.gpus all --out reports/h200-gpus --seconds 290     in one call
    python3 -m lab.gpus gradings playoff --out reports/h200-gpus        some parts, at length

    gradings    known kernels on one GPU after another, then on 2, 4, … at once, each GPU with as
                much to do and with its share of the cores: what one scores alone and with the
                others at work, how GPUs differ, and how long it all takes
    playoff     two kernels that scores hardly order
    one-lane    a kernel with nothing beside it, not even the compilation of the next
    driver      how many CUDA contexts a second it creates, for all GPUs together
    table       only the tables

Each writes OUT-PART.json as it goes, and OUT.md with the tables of all parts that are there.
Everything is done by the judge's own commands, in processes of their own; what one has not done
when its time is over, or could not do, costs the others nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from harness.board.entry import Entry
from harness.devices import available
from harness.protocol.report import Report, Verdict
from tests import contexts
from tests.occupancy import Held, watched

SOLUTIONS = Path(__file__).resolve().parent.parent / "solutions"
KERNELS = ("36_wgmma_one_accumulator", "33_wgmma_two_phase", "17_split_tail", "02_shared_tile")
"""Two near the power limit, two on CUDA cores. As many as a GPU has lanes, so that each GPU takes
each of them first."""

AGAIN = (*KERNELS, "02_shared_tile", "02_shared_tile")
ALONE = "17_split_tail"
RIVALS = ("10_no_bank_conflicts", "14_bulk_copies")
CACHE = "XDG_CACHE_HOME"
PARTS = ("gradings", "playoff", "one-lane", "driver")
LEAST = {"gradings": 30.0, "playoff": 50.0, "one-lane": 30.0, "driver": 10.0}
"""Seconds, without which a part is not begun."""

CONTEXTS = 6
"""Of a grading: to verify, for each of four tools, and to be timed."""

DRIVER_SECONDS = 2.0


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="+", choices=(*PARTS, "all", "table"), metavar="PART")
    parser.add_argument("--out", type=Path, required=True, help="the beginning of what is written")
    parser.add_argument("--alone", type=int, default=1, help="GPUs that first work by themselves")
    parser.add_argument(
        "--together", type=int, nargs="*", default=[2, 4, 8], help="how many then work at once"
    )
    parser.add_argument("--submissions", type=int, default=100, help="to the arena, graded quickly")
    parser.add_argument("--seconds", type=float, default=3600.0, help="all of it may take")
    chosen = parser.parse_args(words)
    if chosen.parts != ["table"]:
        missing = available.why_no_cuda()
        if missing is not None:
            sys.exit(f"this measures GPUs, and here {missing}")
        run = Run(chosen.out, available.gpus(), time.monotonic() + chosen.seconds)
        works = {
            "gradings": lambda: run.gradings(chosen.alone, chosen.together),
            "playoff": run.playoff,
            "one-lane": run.one_lane,
            "driver": run.driver,
        }
        for part in PARTS:
            if part in chosen.parts or "all" in chosen.parts:
                run.part(part, works[part])
                write_tables(chosen.out)
    write_tables(chosen.out)
    return 0


def write_tables(out: Path) -> None:
    parts = {
        part: json.loads(_part(out, part).read_text())
        for part in PARTS
        if _part(out, part).exists()
    }
    out.with_suffix(".md").write_text(tables(parts))


def _part(out: Path, part: str) -> Path:
    return out.with_name(f"{out.name}-{part}.json")


_HARNESS = (sys.executable, "-m", "harness")


class Line(NamedTuple):
    """One that a command wrote, and when."""

    seconds: float
    text: str


class Run:
    """One call, which keeps to its time: what was measured before it is over is kept."""

    def __init__(self, out: Path, gpus: Sequence[str], deadline: float) -> None:
        self._out = out
        self._gpus = gpus
        self._deadline = deadline

    @property
    def left(self) -> float:
        return self._deadline - time.monotonic()

    def part(self, name: str, work: Callable[[], None]) -> None:
        """Unless it is too late for it; a part that fails says why, and the others go on."""
        if self.left < LEAST[name]:
            print(f"{name}: {self.left:.0f} s are left, which is too little", file=sys.stderr)
            return
        print(f"{name}: begins with {self.left:.0f} s left", file=sys.stderr, flush=True)
        try:
            work()
        except Exception:
            traceback.print_exc()

    def gradings(self, alone: int, together: Sequence[int]) -> None:
        """Each GPU has as much to do, and as many cores, however many work."""
        runs: list[dict[str, Any]] = []
        counts = [each for each in together if each <= len(self._gpus)]
        for gpus in [*([gpu] for gpu in self._gpus[:alone]), *(self._gpus[:n] for n in counts)]:
            if self.left < LEAST["gradings"]:
                break
            files = [*KERNELS] * len(gpus) + [*AGAIN] * len(gpus)
            with cores_of(len(gpus) / len(self._gpus)) as cores, watched(gpus) as occupancy:
                reports = self._graded(["--gpus", ",".join(gpus)], files)
            held = occupancy.held
            runs.append(
                {
                    "gpus": len(gpus),
                    "cores": cores,
                    "gradings": len(files),
                    "held": held and held._asdict(),
                    **reports,
                }
            )
            self._keep("gradings", {"runs": runs})

    def playoff(self) -> None:
        files = [str(SOLUTIONS / f"{name}.cu") for name in RIVALS]
        words = ["playoff", "--gpus", ",".join(self._gpus), "--json", "-"]
        done = self._command(*_HARNESS, *words, *files)
        if done:
            self._keep("playoff", json.loads("".join(line.text for line in done)))

    def one_lane(self) -> None:
        """By itself on the first GPU."""
        reports = self._graded(["--gpus", self._gpus[0]], [ALONE])
        if reports["entries"]:
            self._keep("one-lane", reports)

    def driver(self) -> None:
        counts = (1, 2 * len(self._gpus))
        rates = [contexts.rate(self._gpus, count, DRIVER_SECONDS)._asdict() for count in counts]
        self._keep("driver", {"gpus": len(self._gpus), "rates": rates})

    def _keep(self, part: str, found: dict[str, Any]) -> None:
        _part(self._out, part).write_text(json.dumps(found, indent=1) + "\n")

    def _graded(self, words: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        """What the board keeps of the reports. seconds: from the beginning of the command to the
        last report; first: to the first. Nothing that was translated before is there to be used."""
        files = [str(SOLUTIONS / f"{name}.cu") for name in names]
        with TemporaryDirectory() as empty:
            lines = self._command(
                *(*_HARNESS, "grade", *words, "--host-memory", "pinned", "--json", "-"),
                *files,
                cache=empty,
            )
        if len(files) == 1 and lines:  # that report is written for people to read
            lines = [Line(lines[-1].seconds, "".join(line.text for line in lines))]
        reports = [Report.model_validate_json(line.text) for line in lines]
        return {
            "accepted": sum(report.verdict is Verdict.ACCEPTED for report in reports),
            "first": round(lines[0].seconds, 2) if lines else None,
            "seconds": round(lines[-1].seconds, 2) if lines else None,
            "verdicts": [
                f"{report.submission.name}: {getattr(report.outcome, 'message', report.verdict)}"
                for report in reports
                if report.verdict is not Verdict.ACCEPTED
            ],
            "entries": [
                Entry.of(report, f"{number}")._asdict() for number, report in enumerate(reports)
            ],
            "stages": [
                {
                    "name": report.submission.name,
                    "done": round(line.seconds, 2),
                    **{each.stage: round(each.seconds, 2) for each in report.stages},
                    "context_ms": report.measurement and report.measurement.first_launch.context_ms,
                }
                for line, report in zip(lines, reports, strict=True)
            ],
        }

    def _command(self, *words: str, cache: str | None = None) -> list[Line]:
        """The lines that it has written when it ends, or when the time is over. cache: instead of
        the user's."""
        began = time.monotonic()
        lines: list[Line] = []
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ({CACHE: cache} if cache else {}),
        )

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip():
                    lines.append(Line(time.monotonic() - began, line.rstrip("\n")))

        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        try:
            process.wait(max(self.left, 1.0))
        except subprocess.TimeoutExpired:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
        reading.join(5)
        return lines


@contextmanager
def cores_of(share: float) -> Iterator[int]:
    """Inside, what is started has this share of the cores; so many they are."""
    if sys.platform != "linux":
        yield os.cpu_count() or 1
        return
    every = os.sched_getaffinity(0)
    chosen = sorted(every)[: max(1, round(share * len(every)))]
    os.sched_setaffinity(0, chosen)
    try:
        yield len(chosen)
    finally:
        os.sched_setaffinity(0, every)


def tables(parts: dict[str, Any]) -> str:
    lines = [
        "# Several GPUs of one machine",
        "",
        "Scores of full gradings, × cuBLAS. Each GPU has its share of the cores, however many "
        "work: two for what is measured, the others for what is compiled and checked meanwhile. A "
        "grading creates CUDA contexts in several processes, and the driver creates one after the "
        "other, on whichever GPUs: most of them beside the measurement of another. A GPU measures "
        "one kernel or checks several, and is idle where nobody is ready for it.",
    ]
    of_parts = {
        "gradings": _gradings,
        "playoff": _playoff_table,
        "one-lane": lambda found: _one_lane(found, parts.get("gradings", {"runs": []})["runs"]),
        "driver": _driver,
    }
    for part, table in of_parts.items():
        if part in parts:
            lines += ["", *table(parts[part])]
    return "\n".join(lines) + "\n"


def _gradings(found: dict[str, Any]) -> list[str]:
    runs = [run for run in found["runs"] if run["entries"]]
    refused = [f"* {said}" for run in runs for said in run["verdicts"]]
    return [
        *_spread_table(runs),
        *_beside(runs),
        "",
        *_throughput(runs),
        *(["", *refused] if refused else []),
    ]


def _entries(run: dict[str, Any]) -> list[Entry]:
    known = Entry._fields
    return [
        Entry(**{name: value for name, value in each.items() if name in known})
        for each in run["entries"]
    ]


def _spread_table(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Each kernel on each GPU: alone, and while the others work."""
    scored = [(run["gpus"], each) for run in runs for each in _entries(run) if each.score]
    gpus = list(dict.fromkeys(each.uuid or "" for _, each in scored))
    counts = dict.fromkeys(run["gpus"] for run in runs)
    columns = [(gpu, count) for gpu in gpus for count in counts]
    columns = [
        (gpu, count)
        for gpu, count in columns
        if any(c == count and e.uuid == gpu for c, e in scored)
    ]
    headings = [
        f"{gpu[:12]} {'alone' if count == 1 else f'with {count - 1} more'}"
        for gpu, count in columns
    ]
    lines = [
        f"| kernel | {' | '.join(headings)} | GPUs differ by |",
        f"|---|{'---:|' * (len(headings) + 1)}",
    ]
    for name in dict.fromkeys(each.name for _, each in scored):
        cells = [
            ", ".join(
                f"{each.score:.4f}"
                for of, each in scored
                if (of, each.name, each.uuid) == (count, name, gpu)
            )
            for gpu, count in columns
        ]
        together = [
            mean
            for gpu in gpus
            if (mean := _mean(scored, name, gpu, max(count for count, _ in scored)))
        ]
        differ = math.log(max(together) / min(together)) if len(together) > 1 else None
        last = f"{100 * differ:.2f} %" if differ is not None else "–"
        lines.append(f"| {name} | {' | '.join(cell or '–' for cell in cells)} | {last} |")
    return lines


def _beside(runs: Sequence[dict[str, Any]]) -> list[str]:
    """By how much a GPU's scores differ while others work, over all kernels that it graded alone,
    too; the error from how gradings of one kernel on one GPU scatter."""
    alone: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    together: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    for run in runs:
        for each in _entries(run):
            if each.score:
                of = alone if run["gpus"] == 1 else together
                of[each.name, each.uuid].append(math.log(each.score))
    both = [(alone[key], together[key]) for key in alone if key in together]
    scores = [group for pair in both for group in pair]
    degrees = sum(len(group) - 1 for group in scores)
    if not degrees:
        return []
    variance = sum((x - mean(group)) ** 2 for group in scores for x in group) / degrees
    weights = [1 / (1 / len(first) + 1 / len(second)) for first, second in both]
    differ = sum(
        weight * (mean(second) - mean(first))
        for weight, (first, second) in zip(weights, both, strict=True)
    ) / sum(weights)
    return [
        "",
        f"While others work, a GPU's scores differ from its own alone by {100 * differ:+.3f} % "
        f"± {100 * math.sqrt(variance / sum(weights)):.3f} % (one standard error, "
        f"{sum(map(len, scores))} gradings).",
    ]


def _mean(scored: Sequence[tuple[int, Entry]], name: str, gpu: str, count: int) -> float | None:
    found = [
        each.score
        for of, each in scored
        if (of, each.name, each.uuid) == (count, name, gpu) and each.score
    ]
    return sum(found) / len(found) if found else None


def _throughput(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Of linear: what each GPU did in an hour, beside the mean of those that worked alone. Of a run
    that was cut short nothing is said. What stages took, and a context, are medians."""
    lines = [
        "| GPUs | cores | gradings | accepted | with a score | seconds | an hour and GPU "
        "| of linear | from its first result to its last | of linear | a context takes, ms "
        "| verify, s | measure, s | measures, % | checks, % | idle, % |",
        f"|{'---:|' * 16}",
    ]
    over = [run if len(run["entries"]) == run["gradings"] else None for run in runs]
    whole = [run and 3600 * len(run["entries"]) / run["seconds"] / run["gpus"] for run in over]
    going = [run and _going(run) for run in over]
    for number, run in enumerate(runs):
        cells = [
            cell
            for rates in (whole, going)
            for cell in (_rate(rates[number]), _of_linear(rates, runs, number))
        ]
        scored = sum(each.score is not None for each in _entries(run))
        lines.append(
            f"| {run['gpus']} | {run['cores']} | {run['gradings']} | {run['accepted']} | {scored} "
            f"| {run['seconds']:.1f} | {' | '.join(cells)} | {_rate(_median(run, 'context_ms'))} "
            f"| {_seconds(run, 'verify')} | {_seconds(run, 'measure')} "
            f"| {' | '.join(_percent(run['held']))} |"
        )
    return lines


def _going(run: dict[str, Any]) -> float | None:
    """Gradings an hour and GPU, of each from its first result to its last: that the first takes
    long, and that not all GPUs have their last at the same time, matters the less the longer the
    queue is."""
    done: dict[str | None, list[float]] = defaultdict(list)
    for stages, entry in zip(run["stages"], _entries(run), strict=True):
        done[entry.uuid].append(stages["done"])
    rates = [3600 * (len(at) - 1) / (max(at) - min(at)) for at in done.values() if len({*at}) > 1]
    return mean(rates) if rates else None


def _median(run: dict[str, Any], what: str) -> float | None:
    found = [each[what] for each in run["stages"] if each.get(what) is not None]
    return median(found) if found else None


def _seconds(run: dict[str, Any], stage: str) -> str:
    taken = _median(run, stage)
    return "–" if taken is None else f"{taken:.1f}"


def _percent(held: dict[str, float] | None) -> list[str]:
    """Of the time from when a GPU was first held to when it was last."""
    return [f"{100 * held[use]:.0f}" if held else "–" for use in Held._fields]


def _rate(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.0f}"


def _of_linear(rates: Sequence[float | None], runs: Sequence[dict[str, Any]], number: int) -> str:
    alone = [r for r, run in zip(rates, runs, strict=True) if r and run["gpus"] == 1]
    rate = rates[number]
    if rate is None or not alone or runs[number]["gpus"] == 1:
        return "–"
    return f"{rate / (sum(alone) / len(alone)):.2f}"


def _one_lane(found: dict[str, Any], runs: Sequence[dict[str, Any]]) -> list[str]:
    """Beside what the same kernel scored on the same GPU while the next was compiled."""
    (alone,) = _entries(found)
    scored = [(run["gpus"], each) for run in runs for each in _entries(run)]
    beside = _mean(scored, alone.name, alone.uuid or "", 1)
    if beside is None or alone.score is None:
        return []
    return [
        f"{alone.name} with nothing beside it scores {alone.score:.4f}, and {beside:.4f} while the "
        f"next submission is compiled and sanitized: {100 * math.log(beside / alone.score):+.2f} %."
    ]


def _driver(found: dict[str, Any]) -> list[str]:
    alone, together = (contexts.Rate(**each) for each in found["rates"])
    return [
        f"The driver of a machine with {_gpus(found['gpus'])} creates {together.a_second:.1f} "
        f"CUDA contexts a second where {together.asking} processes ask for them, and "
        f"{alone.a_second:.1f} where one does: {alone.ms:.0f} ms each, and {together.ms:.0f} ms. "
        f"With {CONTEXTS} of them a grading takes {1e3 * CONTEXTS / together.a_second:.0f} ms of "
        "its time, whichever GPU it is on."
    ]


def _gpus(count: int) -> str:
    return f"{count} {'GPU' if count == 1 else 'GPUs'}"


def _counted(found: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(found.items()))


def _playoff_table(found: dict[str, Any]) -> list[str]:
    names = [player["name"] for player in found["players"]]
    lines = [
        f"A play-off on {len(found['games'])} GPUs:",
        "",
        "| kernels | difference | 95 % interval | order |",
        "|---|---:|---|---|",
    ]
    return lines + [
        f"| {names[each['first']]} against {names[each['second']]} | {each['percent']:+.3f} % "
        f"| {each['low']:+.3f} to {each['high']:+.3f} % | the first is {each['ordered']} |"
        for each in found["differences"]
    ]


if __name__ == "__main__":
    sys.exit(main())
