"""What SECURITY.md claims is what the files are and what the runs on a GPU recorded."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

from tests.test_submissions import CHEATS, FILES, ROOT, expectations


def test_the_counts_that_are_claimed_are_those_of_the_files_and_of_the_run_on_a_gpu() -> None:
    passed = Counter[str]()
    for case in ElementTree.parse(ROOT / "reports" / "h100-submissions.xml").iter("testcase"):
        folder = str(case.get("name")).partition("[")[2].partition("/")[0]
        found = {item.get("name"): item.get("value") for item in case.iter("property")}
        assert case.find("failure") is None and found["verdict"] == folder, case.get("name")
        passed[folder] += 1
    claimed = re.findall(
        r"^\| `([a-z-]+)` \| (\d+) \| (\d+) \| (\d+) \|$",
        (ROOT / "SECURITY.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    devices = {path: expectations(path).get("device", "any") for path in FILES}
    assert {verdict: tuple(map(int, counts)) for verdict, *counts in claimed} == {
        folder: (
            sum(path.parent.name == folder for path in FILES),
            sum(path.parent.name == folder and devices[path] != "cuda" for path in FILES),
            passed[folder],
        )
        for folder in {path.parent.name for path in FILES}
    }


def test_the_scores_that_cheats_would_have_had_are_those_on_record() -> None:
    record = ElementTree.parse(ROOT / "reports" / "h100-cheats-unchecked.xml")
    scores = {
        str(case.get("name")).partition("[")[2].rstrip("]"): float(str(item.get("value")))
        for case in record.iter("testcase")
        for item in case.iter("property")
        if item.get("name") == "unchecked score"
    }
    assert set(scores) == {path.stem for path in CHEATS}
    claimed = dict(
        re.findall(r"`(\w+)`,?[^;`]*? with\s(\d+\.\d\d)", (ROOT / "SECURITY.md").read_text("utf-8"))
    )
    assert len(claimed) == 4
    assert claimed == {name: f"{scores[name]:.2f}" for name in claimed}
