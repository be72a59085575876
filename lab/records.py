"""Record what the judge finds on a GPU.

The parts run one after the other, for as long as --minutes allow, and each leaves a file. A part
whose file exists is not done again, so the same command continues. Tests that are stopped leave
NAME.partial, to which the next run adds.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from harness.protocol.files import write_whole
from harness.protocol.report import Report
from tests.test_submissions import FILES, cheats_when_timed, expectations, name_of

ROOT = Path(__file__).resolve().parent.parent
TIMED = ROOT / "solutions" / "17_split_tail.cu"

# In one process: those of several do not say which GPU they had.
PYTEST = ("pytest", "-q", "-m", "gpu", "-o", "junit_family=xunit1")
CHEATS, ON_A_GPU = "test_without_the_check", "test_on_a_gpu"
SUBMISSIONS, UNCHECKED = "tests/test_submissions.py", "cheats-unchecked.xml"

OTHERS = sorted(
    str(path.relative_to(ROOT))
    for path in ROOT.glob("tests/**/test_*.py")
    if "mark.gpu" in path.read_text(encoding="utf-8") and path != ROOT / SUBMISSIONS
)
"""Only these: what others import need not be installed beside a GPU."""

TO_END_SECONDS = 20
"""What pytest takes to end the gradings that it has begun, and to write its record."""


def cases(record: Path) -> dict[str, ElementTree.Element]:
    """Return what pytest recorded of each test, by name; nothing if there is no such file."""
    found = ElementTree.parse(record).iter("testcase") if record.is_file() else ()
    return {name: case for case in found if (name := case.get("name"))}


def passed(record: Path) -> set[str]:
    return {
        name
        for name, case in cases(record).items()
        if all(case.find(trouble) is None for trouble in ("failure", "error", "skipped"))
    }


def submissions(name: str) -> list[str]:
    """The tests of submissions on a GPU: cheats that are timed last, for those have it to
    themselves, and before that what is on no record."""
    known = passed(ROOT / "reports" / f"{name}-submissions.xml")
    files = [path for path in FILES if expectations(path).get("device") != "cpu"]
    files.sort(key=lambda path: (cheats_when_timed(path), f"{ON_A_GPU}[{name_of(path)}]" in known))
    return [f"{SUBMISSIONS}::{ON_A_GPU}[{name_of(path)}]" for path in files]


def parts(name: str) -> dict[str, list[str]]:
    """The file that each part leaves behind, and what is run for it, the most telling first."""
    grade = ["harness", "grade", "--device", "cuda", "--json"]
    return {
        f"{name}-full.json": [*grade, "{}", str(TIMED)],
        f"{name}-quick.json": [*grade, "{}", "--quick", str(TIMED)],
        f"{name}-calibration.json": ["harness", "calibrate", "--json", "{}"],
        f"{name}-submissions.xml": [*PYTEST, *submissions(name), "--junitxml={}"],
        f"{name}-{UNCHECKED}": [*PYTEST, SUBMISSIONS, "-k", CHEATS, "--junitxml={}"],
        f"{name}-tests.xml": [*PYTEST, *OTHERS, "--junitxml={}"],
    }


def perform(command: list[str], path: Path, seconds: float) -> str:
    """Do one part, or the rest of it; what became of it. Its file stands under its own name only
    when it is whole."""
    partial, earlier = (path.with_name(f"{path.name}.{word}") for word in ("partial", "earlier"))
    partial.parent.mkdir(parents=True, exist_ok=True)
    if not earlier.exists() and partial.exists():
        partial.rename(earlier)
    done = passed(earlier)
    left = [word for word in command if word.partition("::")[2] not in done]
    if not any("::" in word for word in left) and left != command:
        earlier.replace(path)
        return "all of it was done"
    said = run([word.replace("{}", str(partial)) for word in left], seconds)
    if earlier.exists() and partial.exists():
        add(earlier, partial)
        earlier.unlink()
    if partial.is_file() and not said.startswith(STOPPED):
        partial.replace(path)
    return said


def add(earlier: Path, record: Path) -> None:
    """To a record of pytest's what an earlier one has of tests that are not in it, and when they
    were recorded."""
    tree = ElementTree.parse(record)
    moment = next(ElementTree.parse(earlier).iter("testsuite")).get("timestamp", "")[:19]
    suite = next(tree.iter("testsuite"))
    for interrupted in [case for case in suite.iter("testcase") if not case.get("name")]:
        suite.remove(interrupted)
    for name, case in cases(earlier).items():
        if name not in cases(record):
            suite.append(case)
            properties = case.find("properties")
            if properties is None:
                properties = ElementTree.SubElement(case, "properties")
            if not any(each.get("name") == RECORDED for each in properties):
                ElementTree.SubElement(properties, "property", name=RECORDED, value=moment)
    troubles = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {count: len([*suite.iter(trouble)]) for count, trouble in troubles.items()}
    for count, number in {"tests": len([*suite.iter("testcase")]), **counts}.items():
        suite.set(count, str(number))
    tree.write(record, encoding="utf-8", xml_declaration=True)


STOPPED, RECORDED = "stopped after", "recorded"


def run(arguments: list[str], seconds: float) -> str:
    """Run a module for no longer than these seconds, and return what happened."""
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT)
    try:
        code = process.wait(max(1.0, seconds - TO_END_SECONDS))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(TO_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return f"{STOPPED} {time.monotonic() - started:.0f} s"
    return f"exit code {code} after {time.monotonic() - started:.0f} s"


def lateness(report: Report) -> list[float]:
    """How much later than for cuBLAS the host's clock read in each round, in milliseconds: what
    the limits of harness/judge/stages/clocks.py are to be set from."""
    rounds = report.measurement.rounds if report.measurement else ()
    told = [r for r in rounds if r.kernel_host_ms is not None and r.baseline_host_ms is not None]
    if not told:
        return []
    usual = statistics.median((r.baseline_host_ms or 0) - r.baseline_ms for r in told)
    return [(r.kernel_host_ms or 0) - r.kernel_ms - usual for r in told]


def summary(reports: Iterable[Report]) -> dict[str, object]:
    """Summarise reports by file and kind: verdict, score, seconds, and the spread of clocks."""
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


def main(options: argparse.Namespace) -> int:
    """Record the parts that are missing, for as long as the time allows."""
    folder = options.into.resolve()
    ends = time.monotonic() + 60 * options.minutes
    for file, command in parts(options.name).items():
        part = Path(file).stem.removeprefix(f"{options.name}-")
        if options.only and part not in options.only:
            continue
        left = ends - time.monotonic()
        if (folder / file).exists() or left < 10:
            print(f"{file}: {'no time left' if left < 10 else 'there already'}", flush=True)
            continue
        print(f"{file}: {perform(command, folder / file, left)}", flush=True)
        keep_summary(options.name, folder)
    return 0


def keep_summary(name: str, folder: Path) -> None:
    """Write the summary of the gradings made here and of those in reports/."""
    files = [folder / f"{name}-{kind}.json" for kind in ("full", "quick")]
    files += sorted((ROOT / "reports" / name).glob("*.json"))
    reports = [Report.model_validate_json(path.read_bytes()) for path in files if path.is_file()]
    text = json.dumps(summary(reports), indent=1, ensure_ascii=False) + "\n"
    write_whole(folder / f"{name}-summary.json", text)
