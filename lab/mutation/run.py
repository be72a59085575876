"""Changes one thing at a time and asks whether a test notices: `nox -s mutants -- AREA ...`.

Each function of an area is changed in every way of changes.py, and those tests of the area's own
folder run that call it, once before with nothing changed: one that fails then says nothing of a
change. What survived the last time is tried again, and what has changed since.
The area "named" are the changes of named.toml. Without an area: all of them. It ends with the
survivors that nobody has given a reason for and, where all areas were asked, with the reasons of
those that survive no longer.

    results.json  of each file: how many changes there are, how many of them were tried and how many
                  noticed, when it was first tried and now, and how many survive without a reason
    stays.toml    why a survivor stays
    named.json    of each change that has a name: the test that noticed it
    README.md     both, for reading; written by this program
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lab.mutation import named
from lab.mutation.changes import Change, changes
from lab.mutation.plugin import NOTICED, ROOT

HERE = Path(__file__).resolve().parent
FOLDER = ROOT / ".mutants"
"""What became of each change, for the next time; kept out of the repository."""

AREAS = {
    "problem": "problem",
    "stages": "harness/judge/stages",
    "compiling": "harness/compiling",
    "tuning": "harness/judge/tune",
    "workers": "harness/judge/workers",
    "leaderboard": "harness/board",
    "harness": "harness",
}
"""Where the code of each is; its tests are in the folder of its name."""

TOP = ("background", "estimates", "files", "pool", "report", "submission")
"""Of the files at the top of harness/ those whose own tests are quick."""

NAMED = "named"

OPTIONS = {
    # From end to end, with compilers and the CPU device: too slow to be asked of each change.
    "compiling": tuple(
        f"--ignore=tests/compiling/test_{name}.py"
        for name in ("compiler", "machine_code", "compile_attacks")
    ),
    "tuning": ("--ignore=tests/judge/tune/test_tune.py",),
    "leaderboard": (
        "--ignore=tests/board/test_site_in_browser.py",
        "--ignore=tests/board/test_store_under_kill.py",
        # Each change would start a server; what stores have in common is asked of SQLite's.
        "-knot postgresql and not password",
    ),
}

QUICK = ("unraisableexception", "threadexception", "cacheprovider")
"""Parts of pytest that would take longer than most tests."""

Results = dict[str, dict[str, dict[str, int]]]

Reasons = dict[tuple[str, str], str]
"""By function and change."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="nox -s mutants --", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join([*AREAS, NAMED]))
    parser.add_argument("--every", type=int, default=1, help="try only one change in so many")
    parser.add_argument("--list", action="store_true", help="only say what came of the last time")
    arguments = parser.parse_args()
    unknown = sorted({*arguments.areas} - {*AREAS, NAMED})
    if unknown:
        parser.error(f"there is no area {unknown[0]}: there are {', '.join([*AREAS, NAMED])}")
    reasons = read_reasons()
    unnoticed = 0
    survived: set[tuple[str, str]] = set()
    for area in arguments.areas or [*AREAS, NAMED]:
        if area == NAMED:
            unnoticed = 0 if arguments.list else ask_named()
            continue
        kept = FOLDER / f"{area}.json"
        if not arguments.list and (failed := ask(area, kept, arguments.every)):
            return failed
        if not kept.is_file():
            print(f"{area}: nothing was tried here yet; try it by: nox -s mutants -- {area}")
            continue
        outcomes = json.loads(kept.read_text(encoding="utf-8"))
        if not arguments.list:
            write_results(outcomes, reasons)
        for found in outcomes:
            for change in survivors(found, outcomes[found]):
                survived.add((change.function, change.lines))
                if (change.function, change.lines) not in reasons:
                    print(f"\n{change.function}\n{change.lines}")
    if not arguments.areas:
        for function, lines in sorted(reasons.keys() - survived):
            print(f"\nsurvives no longer, so take its reason out: {function}\n{lines}")
    if not arguments.list:
        (HERE / "README.md").write_text(page(reasons), encoding="utf-8")
    return unnoticed


def ask(area: str, kept: Path, every: int) -> int:
    """Try the changes of an area; pytest's exit code where it could not."""
    kept.parent.mkdir(exist_ok=True)
    files = sorted(Path(AREAS[area]).glob("[!_]*.py"))
    tests = [f"tests/{area}", *OPTIONS.get(area, ())]
    if area == "harness":
        files = [file for file in files if file.stem in TOP]
        tests = [f"tests/test_{name}.py" for name in TOP]
    command = [
        *(sys.executable, "-m", "pytest", "--quiet", "--capture=no", "--assert=plain"),
        *("--benchmark-skip", *(f"-pno:{part}" for part in QUICK)),
        *("-ptests.mutation.plugin", f"--outcomes={kept}", f"--every={every}"),
        *(f"--change={file}" for file in files),
        *tests,
    ]
    alone = {"OPENBLAS_NUM_THREADS": "1"}  # NumPy would start threads in every child
    done = subprocess.run(command, cwd=ROOT, env=os.environ | alone, check=False)
    return 0 if done.returncode == 5 else done.returncode  # 5: "no tests ran" as tests


def ask_named() -> int:
    """Make each change that has a name, and keep which test noticed it; 1 where none did."""
    by: dict[str, str | None] = {}
    for change, noticed in named.ask_all():
        by[change.name] = noticed.test if noticed else None
        said = f"{noticed.test} ({noticed.seconds:.3f} s)" if noticed else "NO TEST NOTICED"
        print(f"{change.name}: {said}", flush=True)
    (HERE / "named.json").write_text(json.dumps(by, indent=1) + "\n", encoding="utf-8")
    return int(None in by.values())


@cache
def changes_of(file: str) -> tuple[Change, ...]:
    return tuple(changes(ROOT / file))


def survivors(file: str, outcomes: dict[str, str]) -> Iterator[Change]:
    for change in changes_of(file):
        if outcomes.get(change.key, "noticed") not in NOTICED:
            yield change


def read_reasons() -> Reasons:
    entries = tomllib.loads((HERE / "stays.toml").read_text(encoding="utf-8")).get("survivor", [])
    return {
        (entry["function"], change.strip("\n")): entry["why"]
        for entry in entries
        for change in entry["changes"]
    }


def write_results(outcomes: dict[str, dict[str, str]], reasons: Reasons) -> None:
    path = HERE / "results.json"
    known: Results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for file, found in outcomes.items():
        number = Counter(outcome in NOTICED for outcome in found.values())
        stays = [(each.function, each.lines) in reasons for each in survivors(file, found)]
        now = {
            "all": len(changes_of(file)),
            "tried": number.total(),
            "noticed": number[True],
            "unexplained": stays.count(False),
        }
        known[file] = {"first": known.get(file, {}).get("first", now), "now": now}
    text = json.dumps(dict(sorted(known.items())), indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def page(reasons: Reasons) -> str:
    """README.md."""
    known: Results = json.loads((HERE / "results.json").read_text(encoding="utf-8"))
    lines = [INTRODUCTION]
    for area, folder in AREAS.items():
        files = [file for file in known if Path(file).parent == Path(folder)]
        if files:
            lines.append(row(f"**{area}**", [known[file] for file in files]))
        lines += [row(f"`{Path(file).name}`", [known[file]]) for file in files]
    by = json.loads((HERE / "named.json").read_text(encoding="utf-8"))
    lines += ["", NAMED_CHANGES]
    for change in named.read():
        test = by.get(change.name)
        lines.append(f"| {change.name} | `{change.file}` | {f'`{test}`' if test else '**none**'} |")
    lines += ["", "## Survivors that stay", ""]
    for (function, change), why in sorted(reasons.items()):
        lines += [f"`{function}`: {why}", "", *(f"    {line}" for line in change.splitlines()), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def row(name: str, found: list[dict[str, dict[str, int]]]) -> str:
    cells = [name]
    for when in ("first", "now"):
        everything, tried, noticed = (
            sum(each[when][key] for each in found) for key in ("all", "tried", "noticed")
        )
        sample = f" (a sample of {everything})" if tried < everything else ""
        share = f"{100 * noticed / tried:.1f} %" if tried else ""
        cells += [f"{noticed} of {tried}{sample}", share]
    cells.append(str(sum(each["now"].get("unexplained", 0) for each in found)))
    return f"| {' | '.join(cells)} |"


INTRODUCTION = """\
# What the tests notice

Written by `nox -s mutants`, which changes one thing at a time in a function, in all the ways that
mutmut knows, and runs the tests that call it: a change that no test notices is a survivor, and
stays where it changes nothing, for a reason that stands below. Not changed are constants of a
module, types, how text is encoded, and sentences, for how they are worded is no behaviour; nor
the function that says which processes are to be killed. Of the files at the top of harness/ those
are changed whose own tests are quick.

| | first tried: noticed | | now: noticed | | survivors without a reason |
|---|---:|---:|---:|---:|---:|"""

NAMED_CHANGES = """\
## Changes that have a name

Once every test missed them; `nox -s mutants -- named` makes each in a copy of the project.

| change | in | noticed first by |
|---|---|---|"""


if __name__ == "__main__":
    sys.exit(main())
