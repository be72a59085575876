"""Changes that have a name: each is made in a copy of the project, where its tests must fail.

They are those that no function holds, too: constants, and what the CPU device's runtime does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from lab.mutation.plugin import ROOT

FAILED = 1
"""pytest's exit code; 0 is passed, and any other says that it could not ask."""


@dataclass(frozen=True, slots=True)
class NamedChange:
    """Another text in the place of one that stands once in a file."""

    name: str
    file: str
    before: str
    after: str
    tests: str
    """As pytest takes them."""

    def of(self, text: str) -> str:
        """The file's text with this change. Raises ValueError where it cannot be made."""
        if (times := text.count(self.before)) != 1:
            raise ValueError(f"{self.name}: {self.before!r} stands {times} times in {self.file}")
        return text.replace(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Noticed:
    """By this test, the first that failed."""

    test: str
    seconds: float


def read() -> list[NamedChange]:
    text = Path(__file__).with_name("named.toml").read_text(encoding="utf-8")
    return [NamedChange(**entry) for entry in tomllib.loads(text)["change"]]


def ask_all() -> Iterator[tuple[NamedChange, Noticed | None]]:
    """Of each change in turn, who noticed it. Raises RuntimeError where the tests fail without."""
    changes = read()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "project")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "reports"))
        if failed := _first_failed({change.tests for change in changes}, copy):
            raise RuntimeError(f"as the code stands, this fails: {failed.test}")
        for change in changes:
            with made(change, copy):
                yield change, _first_failed({change.tests}, copy)


@contextmanager
def made(change: NamedChange, project: Path) -> Iterator[None]:
    """Inside, the project has this change."""
    path = project / change.file
    text = path.read_text(encoding="utf-8")
    path.write_text(change.of(text), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def _first_failed(tests: set[str], project: Path) -> Noticed | None:
    said = project.with_name("said.xml")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--quiet", "--exitfirst", "-pno:cacheprovider"),
            *(f"--junit-xml={said}", *sorted(tests)),
        ],
        cwd=project,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, FAILED):
        raise RuntimeError(f"pytest could not ask {tests}\n{done.stdout}{done.stderr}")
    for case in ElementTree.parse(said).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            return Noticed(case.attrib["name"], float(case.attrib["time"]))
    return None
