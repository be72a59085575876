"""Runs a study on the GPU of this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.protocol.errors import JudgeFailure
from lab.studies.job import StudyJob, StudyResults

_SECONDS = 600


def measure(job: StudyJob) -> StudyResults:
    """In a process of its own. Raises JudgeFailure where that fails."""
    with TemporaryDirectory() as scratch:
        wanted, found = Path(scratch) / "job.json", Path(scratch) / "results.json"
        wanted.write_text(job.model_dump_json())
        done = subprocess.run(
            (sys.executable, "-m", "lab.studies.target", str(wanted), str(found)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode != 0 or not found.is_file():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise JudgeFailure("the study failed on the GPU", "\n".join(last))
        return StudyResults.model_validate_json(found.read_bytes())
