"""Measures what several GPUs of one machine do: run it there, once, for each part.

    python3 -m tests.gpus spread --out reports/h200-gpus        each GPU alone, then all at once
    python3 -m tests.gpus throughput --out reports/h200-gpus    gradings an hour on 1, 2, 4, … GPUs
    python3 -m tests.gpus playoff --out reports/h200-gpus       two kernels that scores hardly order

Each writes OUT-PART.json, and OUT.md with the tables of all parts that are there. Everything is
done by the judge's own commands, in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.devices import available
from harness.leaderboard.entry import Entry
from harness.leaderboard.spread import measured
from harness.report import Report, Verdict

SOLUTIONS = Path(__file__).resolve().parent.parent / "solutions"
REFERENCES = ("02_shared_tile", "17_split_tail", "33_wgmma_two_phase", "36_wgmma_one_accumulator")
"""Graded on every GPU: slow, on CUDA cores, and two near the power limit."""

TILE = "02_shared_tile"
RIVALS = ("33_wgmma_two_phase", "34_wgmma_fp16_scaled")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=("spread", "throughput", "playoff", "table"))
    parser.add_argument("--out", type=Path, required=True, help="the beginning of what is written")
    parser.add_argument(
        "--gradings", type=int, default=100, help="of throughput, on all GPUs together"
    )
    chosen = parser.parse_args(words)
    if chosen.part != "table":
        missing = available.why_no_cuda()
        if missing is not None:
            sys.exit(f"this measures GPUs, and here {missing}")
        gpus = available.gpus()
        found = {
            "spread": lambda: spread(gpus),
            "throughput": lambda: throughput(gpus, chosen.gradings),
            "playoff": lambda: playoff(gpus),
        }[chosen.part]()
        _part(chosen.out, chosen.part).write_text(json.dumps(found, indent=1) + "\n")
    parts = {
        part: json.loads(_part(chosen.out, part).read_text())
        for part in ("spread", "throughput", "playoff")
        if _part(chosen.out, part).exists()
    }
    chosen.out.with_suffix(".md").write_text(tables(parts))
    return 0


def _part(out: Path, part: str) -> Path:
    return out.with_name(f"{out.name}-{part}.json")


def spread(gpus: Sequence[str]) -> dict[str, Any]:
    """Every reference on each GPU alone, and on all at once."""
    files = [SOLUTIONS / f"{name}.cu" for name in REFERENCES]
    alone = [report for gpu in gpus for report in _reports([_grade([gpu], files)])]
    together = _reports([_grade([gpu], files) for gpu in gpus])
    return {"alone": alone, "together": together}


def throughput(gpus: Sequence[str], gradings: int) -> dict[str, Any]:
    """The 16×16 tile again and again: as many a GPU on fewer GPUs as on all."""
    each = max(1, gradings // len(gpus))
    counts = [count for count in (1, 2, 4, 8) if count <= len(gpus)]
    found = []
    for count in counts:
        started = time.monotonic()
        reports = _reports([_grade(gpus[:count], [SOLUTIONS / f"{TILE}.cu"] * (each * count))])
        seconds = time.monotonic() - started
        found.append(
            {
                "gpus": count,
                "gradings": len(reports),
                "accepted": sum(one["verdict"] == Verdict.ACCEPTED for one in reports),
                "seconds": seconds,
                "scores": [[one["uuid"], one["score"]] for one in reports],
            }
        )
    return {"file": TILE, "runs": found}


def playoff(gpus: Sequence[str]) -> dict[str, Any]:
    files = [str(SOLUTIONS / f"{name}.cu") for name in RIVALS]
    done = subprocess.run(
        [*_HARNESS, "playoff", "--gpus", ",".join(gpus), "--json", "-", *files],
        stdout=subprocess.PIPE,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


_HARNESS = (sys.executable, "-m", "harness")


def _grade(gpus: Sequence[str], files: Iterable[Path]) -> subprocess.Popen[bytes]:
    """Starts it."""
    words = ["grade", "--gpus", ",".join(gpus), "--host-memory", "pinned", "--json", "-"]
    return subprocess.Popen([*_HARNESS, *words, *map(str, files)], stdout=subprocess.PIPE)


def _reports(started: Sequence[subprocess.Popen[bytes]]) -> list[dict[str, Any]]:
    """What the board keeps of each report."""
    lines = [line for each in started for line in each.communicate()[0].splitlines()]
    reports = [Report.model_validate_json(line) for line in lines]
    return [Entry.of(report, f"{number}")._asdict() for number, report in enumerate(reports)]


def tables(parts: dict[str, Any]) -> str:
    lines = ["# Several GPUs of one machine"]
    if "spread" in parts:
        lines += ["", *_spread_table(parts["spread"])]
    if "throughput" in parts:
        lines += ["", *_throughput_table(parts["throughput"])]
    if "playoff" in parts:
        lines += ["", *_playoff_table(parts["playoff"])]
    return "\n".join(lines) + "\n"


def _spread_table(found: dict[str, Any]) -> list[str]:
    alone, together = ([Entry(**each) for each in found[how]] for how in ("alone", "together"))
    scored = [each for each in alone if each.score is not None]
    gpus = list(dict.fromkeys(each.uuid or "" for each in alone))
    headings = [f"{gpu[:12]} {how}" for gpu in gpus for how in ("alone", "together")]
    lines = [
        f"| kernel | {' | '.join(headings)} | GPUs differ by |",
        f"|---|{'---:|' * (len(headings) + 1)}",
    ]
    for name in dict.fromkeys(each.name for each in alone):
        cells = [
            next(
                (f"{e.score:.4f}" for e in runs if (e.name, e.uuid) == (name, gpu) and e.score), "–"
            )
            for gpu in gpus
            for runs in (alone, together)
        ]
        scores = [each.score for each in scored if each.name == name and each.score]
        differ = f"{100 * math.log(max(scores) / min(scores)):.2f} %" if scores else "–"
        lines.append(f"| {name} | {' | '.join(cells)} | {differ} |")
    for cores in sorted({each.cores or "" for each in scored}):
        spread = measured(each for each in scored if each.cores == cores)
        lines += [
            "",
            f"The spread between GPUs for {cores}, weighed with what was known before: "
            f"{100 * spread.deviation:.2f} % with {spread.degrees} degrees of freedom.",
        ]
    return lines


def _throughput_table(found: dict[str, Any]) -> list[str]:
    lines = [
        f"Gradings of {found['file']}:",
        "",
        "| GPUs | gradings | accepted | seconds | an hour and GPU | of linear |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    first = None
    for run in found["runs"]:
        rate = 3600 * run["gradings"] / run["seconds"] / run["gpus"]
        first = first or rate
        lines.append(
            f"| {run['gpus']} | {run['gradings']} | {run['accepted']} | {run['seconds']:.0f} "
            f"| {rate:.0f} | {rate / first:.2f} |"
        )
    return lines


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
