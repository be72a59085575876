"""Everything that is on record of a GPU, in ten minutes: python -m tests.gpu_records h100

Runs the parts below, one after the other, for as long as --minutes allow, and leaves each in the
folder under the name that it has in reports/. What is there already is not done again, so the same
command goes on where it stopped; copy what has passed to reports/.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from harness.files import write_whole
from harness.report import Report

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = sorted(ROOT.glob("solutions/*.cu"))
TIMED = ROOT / "solutions" / "17_split_tail.cu"

# In one process: those of several do not say which GPU they had.
PYTEST = ("pytest", "-q", "-n0", "-m", "gpu", "-o", "junit_family=xunit1")
CHEATS = "test_without_the_check"
SUBMISSIONS, UNCHECKED = "tests/test_submissions.py", "cheats-unchecked.xml"


def parts(name: str) -> dict[str, list[str]]:
    """The file that each part leaves behind, and what is run for it, the most telling first."""
    grade = ["harness", "grade", "--device", "cuda", "--json"]
    return {
        f"{name}-full.json": [*grade, "{}", str(TIMED)],
        f"{name}-quick.json": [*grade, "{}", "--quick", str(TIMED)],
        f"{name}-submissions.xml": [*PYTEST, SUBMISSIONS, "-k", f"not {CHEATS}", "--junitxml={}"],
        f"{name}-calibration.json": ["harness", "calibrate", "--json", "{}"],
        f"{name}-tests.xml": [*PYTEST, f"--ignore={SUBMISSIONS}", "tests", "--junitxml={}"],
        f"{name}-{UNCHECKED}": [*PYTEST, SUBMISSIONS, "-k", CHEATS, "--junitxml={}"],
        **{
            f"{name}-clocks/{file.stem}.json": [*grade, "{}", "--quick", str(file)]
            for file in SOLUTIONS
        },
    }


def lateness(report: Report) -> list[float]:
    """How much later than for cuBLAS the host's clock read in each round, in milliseconds: what
    the limits of harness/stages/clocks.py are to be set from."""
    rounds = report.measurement.rounds if report.measurement else ()
    told = [r for r in rounds if r.kernel_host_ms is not None and r.baseline_host_ms is not None]
    if not told:
        return []
    usual = statistics.median((r.baseline_host_ms or 0) - r.baseline_ms for r in told)
    return [(r.kernel_host_ms or 0) - r.kernel_ms - usual for r in told]


def summary(reports: Iterable[Report]) -> dict[str, object]:
    """By file and kind of grading: verdict, score, seconds by stage, and the clocks' spread."""
    found: dict[str, object] = {}
    for report in reports:
        late = lateness(report)
        found[f"{report.submission.name}, {'quick' if report.quick else 'full'}"] = {
            "verdict": report.verdict,
            "score": report.score.ratio if report.score else None,
            "seconds": {time.stage: round(time.seconds, 1) for time in report.stages},
            "later than cuBLAS, ms": {
                "least": min(late),
                "median": statistics.median(late),
                "most": max(late),
            }
            if late
            else None,
        }
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", help="of the GPU, in the names of files: h100")
    parser.add_argument("--into", type=Path, default=Path("records"), help="folder (records/)")
    parser.add_argument("--minutes", type=float, default=9.5, help="no part goes on after these")
    options = parser.parse_args()
    ends = time.monotonic() + 60 * options.minutes
    for file, command in parts(options.name).items():
        path = options.into / file
        left = ends - time.monotonic()
        if path.exists() or left < 10:
            print(f"{file}: {'there already' if path.exists() else 'no time left'}")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        arguments = [word.replace("{}", str(path)) for word in command]
        try:
            code = subprocess.run(
                [sys.executable, "-m", *arguments], cwd=ROOT, timeout=left, check=False
            ).returncode
            print(f"{file}: exit code {code} after {time.monotonic() - started:.0f} s", flush=True)
        except subprocess.TimeoutExpired:
            print(f"{file}: stopped after {left:.0f} s", flush=True)
    graded = sorted(options.into.glob(f"{options.name}-*/*.json"))
    graded += [options.into / f"{options.name}-{kind}.json" for kind in ("full", "quick")]
    reports = [Report.model_validate_json(path.read_bytes()) for path in graded if path.is_file()]
    text = json.dumps(summary(reports), indent=1, ensure_ascii=False) + "\n"
    options.into.mkdir(parents=True, exist_ok=True)
    write_whole(options.into / f"{options.name}-summary.json", text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
