"""Rules of the house that no tool checks; import-linter holds the layers (pyproject.toml)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted([*ROOT.glob("problem/**/*.py"), *ROOT.glob("harness/**/*.py")])


def imports(path: Path) -> set[str]:
    """Every name that is imported, with its module: `cuda.bindings.nvrtc`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_says_what_it_is_for_in_its_first_line(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring and docstring.splitlines()[0].strip()


def test_the_compiler_asks_no_driver() -> None:
    """It runs where there is none: of CUDA it takes NVRTC and what finds NVIDIA's programs."""
    allowed = ("cuda.bindings.nvrtc", "cuda.pathfinder")
    for path in ROOT.glob("harness/compiling/**/*.py"):
        named = {name for name in imports(path) if name.split(".")[0] in ("cuda", "cupy")}
        assert all(name.startswith(allowed) for name in named), (path, named)


def test_the_story_does_not_ask_which_device_it_is() -> None:
    for path in [ROOT / "harness" / "grade.py", *ROOT.glob("harness/stages/*.py")]:
        assert not imports(path) & {"harness.report.DeviceKind", "harness.workers.isolation.Role"}


@pytest.mark.parametrize("path", sorted(ROOT.glob("solutions/*.cu")), ids=lambda path: path.stem)
def test_a_solution_begins_with_its_idea(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("//")
