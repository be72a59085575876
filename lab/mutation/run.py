"""Change one thing at a time and ask whether a test notices: `nox -s mutants -- AREA ...`.

Each function of an area is changed in every way of changes.py, and those tests of the area's folder
run that call it. What survived the last time is tried again, and what has changed since. It ends
with the survivors.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lab.mutation.changes import Change, changes
from lab.mutation.plugin import NOTICED, ROOT

FOLDER = ROOT / ".mutants"
"""What became of each change, for the next time; kept out of the repository."""

AREAS = {
    "problem": "problem",
    "stages": "harness/judge/stages",
    "tune": "harness/judge/tune",
    "workers": "harness/judge/workers",
    "compiling": "harness/compiling",
    "protocol": "harness/protocol",
    "board": "harness/board",
    "arena": "harness/arena",
}

SLOW = {
    # From end to end, with compilers and the CPU device: too slow to be asked of each change.
    "compiling": tuple(
        f"--ignore=tests/compiling/test_{name}.py"
        for name in ("compiler", "machine_code", "compile_attacks")
    ),
    "tune": ("--ignore=tests/judge/tune/test_tune.py",),
    "board": ("--ignore=tests/board/test_store_under_kill.py", "-knot postgresql"),
}

QUICK = ("unraisableexception", "threadexception", "cacheprovider")
"""Parts of pytest that would take longer than most tests."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="nox -s mutants --", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("--every", type=int, default=1, help="try only one change in so many")
    arguments = parser.parse_args()
    unknown = sorted({*arguments.areas} - {*AREAS})
    if unknown:
        parser.error(f"there is no area {unknown[0]}: there are {', '.join(AREAS)}")
    count = 0
    for area in arguments.areas or AREAS:
        kept = FOLDER / f"{area}.json"
        if failed := ask(area, kept, arguments.every):
            return failed
        outcomes = json.loads(kept.read_text(encoding="utf-8"))
        for file, found in outcomes.items():
            for change in survivors(file, found):
                count += 1
                print(f"\n{change.function}\n{change.lines}")
    print(f"\n{count} changes were noticed by no test.")
    return int(count > 0)


def ask(area: str, kept: Path, every: int) -> int:
    """Try the changes of an area; return pytest's exit code if it could not."""
    kept.parent.mkdir(exist_ok=True)
    files = sorted(Path(AREAS[area]).glob("[!_]*.py"))
    command = [
        *(sys.executable, "-m", "pytest", "--quiet", "--capture=no", "--assert=plain"),
        *("--benchmark-skip", *(f"-pno:{part}" for part in QUICK)),
        *("-plab.mutation.plugin", f"--outcomes={kept}", f"--every={every}"),
        *(f"--change={file}" for file in files),
        AREAS[area].replace("harness", "tests") if "harness" in AREAS[area] else "tests/problem",
        *SLOW.get(area, ()),
    ]
    alone = {"OPENBLAS_NUM_THREADS": "1"}  # NumPy would start threads in every child
    done = subprocess.run(command, cwd=ROOT, env=os.environ | alone, check=False)
    return 0 if done.returncode == 5 else done.returncode  # 5: "no tests ran" as tests


def survivors(file: str, outcomes: dict[str, str]) -> Iterator[Change]:
    for change in changes(ROOT / file):
        if outcomes.get(change.key, "noticed") not in NOTICED:
            yield change


if __name__ == "__main__":
    sys.exit(main())
