"""Make single changes with mutmut, and list those that no test detects.

Each area is tested in a copy of the repository, which is kept. Code that has
not changed since the last time is not tested again.

example:
  nox -s lab -- mutants stages
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".mutants"
AREAS = {
    "problem": "problem",
    "stages": "harness/judge/stages",
    "tune": "harness/judge/tune",
    "compiling": "harness/compiling",
    "protocol": "harness/protocol",
    "board": "harness/board",
    "arena": "harness/arena",
}
"""The code that is changed; the tests in the same folder under tests/ are run. Code that starts and
ends processes is not changed, since a mutant could end processes of others."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "areas", nargs="*", type=_area, metavar="AREA", help=f"{', '.join(AREAS)} (default: all)"
    )


def _area(name: str) -> str:
    if name not in AREAS:
        raise argparse.ArgumentTypeError(f"there is no area {name}: there are {', '.join(AREAS)}")
    return name


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    failed = [_try(AREAS[area], FOLDER / area, terminal) for area in arguments.areas or AREAS]
    return Exit.NO_ANSWER if any(failed) else Exit.YES


def _try(source: str, copy: Path, terminal: Terminal) -> int:
    """Test the changes of one folder, and list those that survive."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in tracked.stdout.split("\0") if (ROOT / name).is_file()]
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    settings = {
        "source_paths": ["harness", "problem"],
        "only_mutate": [f"{source}/*"],
        "also_copy": sorted({name.partition("/")[0] for name in names}),
        "pytest_add_cli_args_test_selection": [f"tests/{source.removeprefix('harness/')}"],
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    with open(copy / "pyproject.toml", "a", encoding="utf-8") as project:
        project.write("\n".join(["", "[tool.mutmut]", *lines, ""]))
    mutmut = (sys.executable, "-m", "mutmut")
    done = subprocess.run([*mutmut, "run"], cwd=copy, check=False)
    if done.returncode:
        return done.returncode
    terminal.show(f"`mutmut show NAME` in {copy} shows one of these changes:")
    return subprocess.run([*mutmut, "results"], cwd=copy, check=False).returncode
