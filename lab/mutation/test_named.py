"""Changes that have a name can be made, each in the one place that it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.mutation import named
from lab.mutation.named import NamedChange
from lab.mutation.plugin import ROOT

CHANGE = NamedChange("two is three", "file.py", "2", "3", "tests")


@pytest.mark.parametrize("change", named.read(), ids=lambda change: change.name)
def test_each_can_be_made_and_has_its_tests(change: NamedChange) -> None:
    text = (ROOT / change.file).read_text(encoding="utf-8")
    assert change.of(text) != text
    path, _, test = change.tests.partition("::")
    assert f"def {test}" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(("text", "times"), [("x = 1", 0), ("x = 2 + 2", 2)])
def test_one_that_could_mean_any_place_or_none_is_not_made(text: str, times: int) -> None:
    with pytest.raises(ValueError, match=f"two is three: '2' stands {times} times in file.py"):
        CHANGE.of(text)


def test_a_change_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text("x = 2", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt), named.made(CHANGE, tmp_path):
        assert path.read_text(encoding="utf-8") == "x = 3"
        raise KeyboardInterrupt
    assert path.read_text(encoding="utf-8") == "x = 2"
