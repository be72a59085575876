"""Rules of the house that no tool checks."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted([*ROOT.glob("problem/**/*.py"), *ROOT.glob("harness/**/*.py")])


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_says_what_it_is_for_in_its_first_line(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring and docstring.splitlines()[0].strip()


def test_the_problem_knows_nothing_of_the_judge() -> None:
    for path in ROOT.glob("problem/**/*.py"):
        assert not any(name.startswith("harness") for name in imports(path)), path


def test_only_devices_touch_a_gpu() -> None:
    for path in MODULES:
        if "devices" not in path.parts:
            assert not imports(path) & {"cupy", "pynvml"}, path


def test_the_story_knows_no_device_by_name() -> None:
    names = imports(ROOT / "harness" / "grade.py")
    assert not any("cuda" in name or "cpu" in name for name in names)


@pytest.mark.parametrize("path", sorted(ROOT.glob("solutions/*.cu")), ids=lambda path: path.stem)
def test_a_solution_begins_with_its_idea(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("//")
