"""Reading a file: one clear sentence for whatever is not a kernel."""

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.report import Stage, Submission
from harness.submission import MAX_BYTES, Unreadable, read


def test_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_bytes(b"\xef\xbb\xbf// \xc3\xa9\r\n")
    submission = read(path, "ada")
    assert isinstance(submission, Submission)
    assert (submission.name, submission.author) == ("mine", "ada")
    assert submission.source == "// é\r\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\x00\x01\x02" * 4_000_000, "larger than 1 MiB"),
        (b"int x;\n\xff\xfe", "line 2 is not UTF-8"),
        (b"int x;\n\nint \0y;", "line 3 has a NUL byte"),
    ],
)
def test_what_is_no_kernel_is_a_compile_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.cu"
    path.write_bytes(content)
    found = read(path)
    assert isinstance(found, Unreadable)
    assert message in found.error.message and found.error.stage is Stage.READ
    assert len(found.submission.source) <= MAX_BYTES


def test_no_file_and_a_directory_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        read(tmp_path / "none.cu")
    with pytest.raises(UsageError, match="is a directory"):
        read(tmp_path)
