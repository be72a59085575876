"""The commands that the documents name exist, take those arguments, and the files are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from harness.cli.main import parser

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = sorted(path for path in ROOT.rglob("*.md") if not {".nox", ".git"} & set(path.parts))
OF_NOX = {
    found[1]
    for found in re.finditer(
        r"^@nox\.session\S*\ndef (\w+)", (ROOT / "noxfile.py").read_text("utf-8"), re.MULTILINE
    )
}
COMMANDS = {path.stem for path in (ROOT / "harness" / "commands").glob("[!_]*.py")}
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_session_that_is_named_exists(document: Path) -> None:
    named = set(re.findall(r"nox -s ([a-z]+)", document.read_text(encoding="utf-8")))
    assert named <= OF_NOX | COMMANDS


def examples() -> list[str]:
    """Commands on indented lines, without what is said of them."""
    found = re.findall(r"^    (?:.*&& )?(?:python3 -m )?nox -s (.*)$", README, re.MULTILINE)
    return [re.sub(r" {2,}.*", "", line) for line in found]


@pytest.mark.parametrize("example", examples())
def test_an_example_of_the_readme_is_understood(example: str) -> None:
    command, *arguments = shlex.split(example)
    if command in COMMANDS:
        given = [word for word in arguments if word != "--"]
        assert parser().parse_args([command, *given]).command == command


def test_there_are_examples() -> None:
    assert len(examples()) >= 6


def test_the_map_of_the_house_names_what_is_there() -> None:
    """Every folder of the judge, and no other."""
    drawn = README.partition("## Where things are")[2]
    named = set(re.findall(r"^ {6}(\w+)/ ", drawn, re.MULTILINE))
    packages = {path.parent.name for path in (ROOT / "harness").glob("*/__init__.py")}
    assert named == packages
    for name in re.findall(r"^ {4}(\w+)/ ", drawn, re.MULTILINE):
        assert (ROOT / name).is_dir()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target.replace("%20", " ")).exists(), target
