"""Measures what several GPUs of one machine do.

    python3 -m tests.gpus all --out reports/h200-gpus --seconds 290     in one call
    python3 -m tests.gpus gradings --out reports/h200-gpus --tiles 25   a part, at length

    gradings    known kernels and the 16×16 tile on 1, 2, 4, … GPUs: what one scores alone and with
                the others at work, how GPUs differ, and how many gradings there are in an hour
    arena       an arena on all of them, one of whose workers is killed in the middle of a job
    one-lane    a kernel with nothing beside it, not even the compilation of the next
    playoff     two kernels that scores hardly order
    table       only the tables

Each writes OUT-PART.json, and OUT.md with the tables of all parts that are there. Everything is
done by the judge's own commands, in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.devices import available
from harness.leaderboard.entry import Entry
from harness.leaderboard.spread import measured
from harness.report import Report, Verdict

SOLUTIONS = Path(__file__).resolve().parent.parent / "solutions"
REFERENCES = ("36_wgmma_one_accumulator", "17_split_tail")
"""Near the power limit, and on CUDA cores."""

TILE = "02_shared_tile"
RIVALS = ("33_wgmma_two_phase", "34_wgmma_fp16_scaled")
PARTS = ("gradings", "arena", "one-lane", "playoff")
LEAST = {"arena": 60.0, "one-lane": 40.0}
"""Seconds, without which a part is not begun: a lease and some gradings; one grading."""


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=(*PARTS, "all", "table"))
    parser.add_argument("--out", type=Path, required=True, help="the beginning of what is written")
    parser.add_argument("--tiles", type=int, default=1, help="gradings of the tile for each GPU")
    parser.add_argument("--submissions", type=int, default=3, help="to the arena")
    parser.add_argument("--seconds", type=float, default=3600.0, help="all of it may take")
    chosen = parser.parse_args(words)
    if chosen.part != "table":
        missing = available.why_no_cuda()
        if missing is not None:
            sys.exit(f"this measures GPUs, and here {missing}")
        run = Run(chosen.out, available.gpus(), time.monotonic() + chosen.seconds)
        if chosen.part in ("gradings", "all"):
            run.gradings(chosen.tiles)
        if chosen.part in ("arena", "all"):
            run.arena(chosen.submissions)
        if chosen.part in ("one-lane", "all"):
            run.one_lane()
        if chosen.part == "playoff":
            run.playoff()
    parts = {
        part: json.loads(_part(chosen.out, part).read_text())
        for part in PARTS
        if _part(chosen.out, part).exists()
    }
    chosen.out.with_suffix(".md").write_text(tables(parts))
    return 0


def _part(out: Path, part: str) -> Path:
    return out.with_name(f"{out.name}-{part}.json")


_HARNESS = (sys.executable, "-m", "harness")


class Run:
    """One call, which keeps to its time: what was measured before it is over is kept."""

    def __init__(self, out: Path, gpus: Sequence[str], deadline: float) -> None:
        self._out = out
        self._gpus = gpus
        self._deadline = deadline
        self._known: list[str] = []
        """Reports of the references on all GPUs at once, as JSON."""

    @property
    def left(self) -> float:
        return self._deadline - time.monotonic()

    def gradings(self, tiles: int) -> None:
        """Each GPU has as much to do, however many work."""
        runs: list[dict[str, Any]] = []
        for count in (each for each in (1, 2, 4, 8) if each <= len(self._gpus)):
            files = [*REFERENCES] * count + [TILE] * (tiles * count)
            lines, reports = self._graded(["--gpus", ",".join(self._gpus[:count])], files)
            runs.append({"gpus": count, "gradings": len(files), **reports})
            self._known = lines
            self._keep("gradings", {"runs": runs})

    def one_lane(self) -> None:
        """The last reference, by itself on the first GPU."""
        if self._too_late("one-lane"):
            return
        words = ["--gpus", self._gpus[0]]
        _, reports = self._graded(words, [REFERENCES[-1]])
        self._keep("one-lane", reports)

    def arena(self, submissions: int) -> None:
        """The gradings of a moment ago are the check-ups of its GPUs."""
        if self._too_late("arena"):
            return
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as known:
            known.writelines(f"{line}\n" for line in self._known)
            known.flush()
            done = self._command(
                *(sys.executable, "-m", "tests.arena.on_gpus", "--known", known.name),
                *("--submissions", str(submissions)),
                *("--seconds", f"{self.left - 10:.0f}"),
            )
        if done:
            self._keep("arena", json.loads(done[-1]))

    def playoff(self) -> None:
        files = [str(SOLUTIONS / f"{name}.cu") for name in RIVALS]
        words = ["playoff", "--gpus", ",".join(self._gpus), "--json", "-"]
        self._keep("playoff", json.loads("".join(self._command(*_HARNESS, *words, *files))))

    def _too_late(self, part: str) -> bool:
        late = self.left < LEAST[part]
        if late:
            print(f"{part}: {self.left:.0f} s are left, which is too little", file=sys.stderr)
        return late

    def _keep(self, part: str, found: dict[str, Any]) -> None:
        _part(self._out, part).write_text(json.dumps(found, indent=1) + "\n")

    def _graded(
        self, words: Sequence[str], names: Sequence[str]
    ) -> tuple[list[str], dict[str, Any]]:
        """The reports as they came, and what the board keeps of them: from the beginning of the
        first grading to the end of the last, since opening the GPUs is no part of either."""
        files = [str(SOLUTIONS / f"{name}.cu") for name in names]
        lines = self._command(
            *(*_HARNESS, "grade", *words, "--host-memory", "pinned", "--json", "-"), *files
        )
        ended = time.time()
        reports = [Report.model_validate_json(line) for line in lines]
        began = min((report.created for report in reports), default=datetime.now().astimezone())
        return lines, {
            "accepted": sum(report.verdict is Verdict.ACCEPTED for report in reports),
            "seconds": round(ended - began.timestamp(), 1),
            "entries": [
                Entry.of(report, f"{number}")._asdict() for number, report in enumerate(reports)
            ],
            "stages": [
                {
                    "name": report.submission.name,
                    **{each.stage: round(each.seconds, 2) for each in report.stages},
                }
                for report in reports
            ],
        }

    def _command(self, *words: str) -> list[str]:
        """The lines that it has written when it ends, or when the time is over."""
        return list(_lines(words, self.left))


def _lines(words: Sequence[str], seconds: float) -> Iterator[str]:
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    output = ""
    try:
        output, _ = process.communicate(timeout=max(seconds, 1.0))
    except subprocess.TimeoutExpired:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            output, _ = process.communicate(timeout=10)
        process.kill()
    yield from (line for line in output.splitlines() if line.strip())


def tables(parts: dict[str, Any]) -> str:
    lines = ["# Several GPUs of one machine"]
    of_parts = {
        "gradings": lambda found: [*_spread_table(found["runs"]), "", *_throughput(found["runs"])],
        "one-lane": lambda found: _one_lane(found, parts["gradings"]["runs"]),
        "arena": _arena,
        "playoff": _playoff_table,
    }
    for part, table in of_parts.items():
        if part in parts:
            lines += ["", *table(parts[part])]
    return "\n".join(lines) + "\n"


def _entries(run: dict[str, Any]) -> list[Entry]:
    return [Entry(**each) for each in run["entries"]]


def _spread_table(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Each kernel on each GPU: alone, and while the others work."""
    scored = [(run["gpus"], each) for run in runs for each in _entries(run) if each.score]
    gpus = list(dict.fromkeys(each.uuid or "" for _, each in scored))
    columns = [(gpu, count) for gpu in gpus for count in (run["gpus"] for run in runs)]
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
    for cores in sorted({each.cores or "" for _, each in scored}):
        spread = measured(each for _, each in scored if each.cores == cores)
        lines += [
            "",
            f"The spread between GPUs for {cores}, weighed with what was known before: "
            f"{100 * spread.deviation:.2f} % with {spread.degrees} degrees of freedom.",
        ]
    return lines


def _mean(scored: Sequence[tuple[int, Entry]], name: str, gpu: str, count: int) -> float | None:
    found = [
        each.score
        for of, each in scored
        if (of, each.name, each.uuid) == (count, name, gpu) and each.score
    ]
    return sum(found) / len(found) if found else None


def _throughput(runs: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "| GPUs | gradings | accepted | seconds | an hour and GPU | of linear |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    first = None
    for run in runs:
        rate = 3600 * run["accepted"] / run["seconds"] / run["gpus"]
        first = first or rate
        lines.append(
            f"| {run['gpus']} | {run['gradings']} | {run['accepted']} | {run['seconds']:.0f} "
            f"| {rate:.0f} | {rate / first:.2f} |"
        )
    return lines


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


def _arena(found: dict[str, Any]) -> list[str]:
    killed = found["killed"] or {"worker": "no worker", "at": "work", "gradings_in_hand": 0}
    attempts = ", ".join(f"{count} {fate}" for fate, count in sorted(found["attempts"].items()))
    gpus = len({uuid for uuid, _ in found["scores"]})
    waiting = f"; when the time was over {found['waiting']} waited" if found["waiting"] else ""
    return [
        f"An arena on {gpus} GPUs, {found['submissions']} submissions in {found['seconds']:.0f} s "
        f"with a lease of {found['lease_seconds']:.0f} s; killed: {killed['worker']} at "
        f"{killed['at']}, with {killed['gradings_in_hand']} in hand. Lost: {found['lost']}; "
        f"doubled: {found['doubled']}{waiting}. Attempts: {attempts}."
    ]


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
