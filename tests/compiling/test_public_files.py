"""Public kernel files get the verdicts of public_files.csv, which holds no text of theirs.

The verdicts are those of quick gradings on the CPU device. Clone the repositories, each into
OWNER/NAME of one folder, and name that folder in the variable MATMUL_ARENA_PUBLIC_FILES; without
it the files are skipped.
"""

import csv
import os
import subprocess
from pathlib import Path

import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import read
from harness.judge.workers.session import Session

CLONES = os.environ.get("MATMUL_ARENA_PUBLIC_FILES")
with Path(__file__).with_name("public_files.csv").open(encoding="utf-8", newline="") as table:
    FILES = list(csv.DictReader(table))


@pytest.mark.skipif(CLONES is None, reason="set MATMUL_ARENA_PUBLIC_FILES to a folder of clones")
@pytest.mark.parametrize("row", FILES, ids=lambda row: f"{row['repository']}/{row['path']}")
def test_a_public_file_gets_its_verdict(
    row: dict[str, str], tmp_path: Path, cpu_session: Session
) -> None:
    clone = Path(CLONES or "", row["repository"])
    if not clone.is_dir():
        pytest.skip(f"there is no clone in {clone}")
    show = ["git", "-C", str(clone), "show", f"{row['commit']}:{row['path']}"]
    path = tmp_path / "public.cu"
    path.write_bytes(subprocess.run(show, capture_output=True, check=True).stdout)
    report = grade(read(path), cpu_session, GradingOptions(quick=True, seed=1))
    assert report.verdict == row["verdict"], report.outcome
