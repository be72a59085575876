"""The documents are short, their links lead to files, and the paths that they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path for path in ROOT.rglob("*.md") if not {".nox", ".git"} & set(path.relative_to(ROOT).parts)
)
WORDS = {"SECURITY.md": 2500, "solutions/README.md": 1500}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target.replace("%20", " ")).exists(), target


@pytest.mark.parametrize("name", ["README.md", "SECURITY.md", "CONTRIBUTING.md"])
def test_every_path_that_is_named_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:harness|tests|problem|solutions|lab)/[\w./-]+)`", text):
        assert (ROOT / path).exists() or "VERDICT" in path, path
    for kernel in re.findall(r"`((?:accepted|[a-z]+-[a-z]+|race)/\w+)`", text):
        assert (ROOT / "tests" / "submissions" / f"{kernel}.cu").is_file(), kernel


@pytest.mark.parametrize(("name", "words"), WORDS.items())
def test_a_document_stays_short(name: str, words: int) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").split()) <= words


def test_the_readme_fits_in_150_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
