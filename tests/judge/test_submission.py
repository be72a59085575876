"""Tests of reading a file: one clear sentence for each file that is not a kernel."""

from hashlib import sha256
from pathlib import Path

import pytest

from harness.judge.submission import MAX_BYTES, read
from harness.protocol.errors import UsageError
from harness.protocol.report import Stage, Submission


def test_a_readable_file_becomes_a_submission(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_bytes(b"\xef\xbb\xbf// \xc3\xa9\r\n")
    submission = read(path, "ada")
    assert (submission.name, submission.author) == ("mine", "ada")
    assert submission.source == "// é\r\n"
    path.write_bytes("// größe\n".encode("latin-1"))
    assert read(path).source == "// gr\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}e\n"
    path.write_bytes(b"\n" * (MAX_BYTES - 1) + b";")  # the largest file
    assert isinstance(read(path), Submission)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\x00\x01\x02" * 4_000_000, "larger than 1 MiB"),
        ("int x;".encode("utf-16"), "line 1 has a NUL byte; save the file as text in UTF-8"),
        (b"int x;\n\nint \0y;\n\0\n", "line 3 has a NUL byte"),
        (b"\n\0", "line 2 has a NUL byte"),
    ],
)
def test_a_file_without_a_kernel_is_a_compile_error(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "bad.cu"
    path.write_bytes(content)
    found = read(path)
    assert message in found.error.message and found.error.stage is Stage.READ
    (said,) = found.error.diagnostics
    assert (said.severity, said.message) == ("error", found.error.message)
    assert found.submission.source == ""
    assert found.submission.sha256 == sha256(content[: MAX_BYTES + 1]).hexdigest(), "all it reads"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("x" * 101, "x" * 100), ("a\x1b[31m\u202eb", "a\ufffd[31m\ufffdb"), ("größe 2", "größe 2")],
)
def test_a_name_is_made_printable_and_short(tmp_path: Path, name: str, shown: str) -> None:
    path = tmp_path / f"{name}.cu"
    path.write_text("int x;")
    submission = read(path)
    assert isinstance(submission, Submission) and submission.name == shown


def test_a_missing_file_and_a_directory_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        read(tmp_path / "none.cu")
    with pytest.raises(UsageError, match="is a directory"):
        read(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot read .*x\.cu: Not a directory"):
        read(tmp_path / "file" / "x.cu")
