"""Tests of the headers that a submission gets, and of the files that a compiler may open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.compiling import headers
from harness.compiling.headers import PRELUDE, PRELUDE_NAME, is_allowed, stand_ins
from harness.compiling.includes import Include
from harness.protocol.report import Diagnostic


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str | None]]:
    """NVIDIA's packages: where each has its headers."""
    found: dict[str, str | None] = {}
    for name in ("cudart", "cccl", "nvcc"):
        folder = tmp_path / name
        folder.mkdir()
        found[name] = str(folder)
    (tmp_path / "cudart" / "cuda_fp16.h").touch()
    (tmp_path / "cccl" / "cuda" / "std").mkdir(parents=True)
    (tmp_path / "cccl" / "cuda" / "std" / "limits").touch()
    monkeypatch.setattr(headers.pathfinder, "find_nvidia_header_directory", found.get)
    headers.include_directories.cache_clear()
    yield found
    headers.include_directories.cache_clear()


def test_the_offline_compilers_headers_are_taken_where_mma_needs_them(
    packages: dict[str, str | None], tmp_path: Path
) -> None:
    three = tuple(tmp_path / name for name in ("cudart", "cccl", "nvcc"))
    assert headers.include_directories() == three
    headers.include_directories.cache_clear()
    (tmp_path / "cudart" / "crt").mkdir()
    (tmp_path / "cudart" / "crt" / "mma.h").touch()
    assert headers.include_directories() == three[:2]


def test_a_package_that_is_not_there_is_left_out(
    packages: dict[str, str | None], tmp_path: Path
) -> None:
    packages.update(cccl=None, nvcc=None)
    assert headers.include_directories() == (tmp_path / "cudart",)


@pytest.mark.usefixtures("packages")
def test_cudas_own_headers_need_no_stand_in() -> None:
    found = stand_ins([Include("cuda_fp16.h", 1), Include("cuda/std/limits", 2)], "")
    assert found.virtual == {PRELUDE_NAME: PRELUDE} and found.warnings == ()


@pytest.mark.usefixtures("packages")
def test_headers_of_host_programs_are_empty_and_unknown_ones_are_said() -> None:
    asked = [
        *(Include("stdio.h", 1), Include("mine.h", 3), Include(PRELUDE_NAME, 4)),
        *(Include("mine.h", 5), Include("vector", 6), Include("limits", 7), Include("cmath", 8)),
    ]
    found = stand_ins(asked, "")
    empty = ("stdio.h", "mine.h", "vector", "limits", "cmath")
    assert {name: found.virtual[name] for name in empty} == dict.fromkeys(empty, "#pragma once\n")
    assert found.virtual[PRELUDE_NAME] == PRELUDE and len(found.virtual) == 6
    assert found.warnings == (
        Diagnostic(
            severity="warning",
            message='header "mine.h" is not available to a submission; it was taken as empty',
            line=3,
        ),
    )


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("name", ["/etc/passwd", "../cccl/cuda/std/limits", "x" * 256, "cuda"])
def test_no_name_leads_to_a_file_of_the_machine(name: str, tmp_path: Path) -> None:
    (tmp_path / "cudart" / "absolute.h").touch()
    for asked in (name, str(tmp_path / "cudart" / "absolute.h")):
        assert asked in stand_ins([Include(asked, 1)], "").virtual


@pytest.mark.usefixtures("packages")
def test_the_longest_name_that_a_file_may_have_is_looked_for(tmp_path: Path) -> None:
    name = "x" * 255
    (tmp_path / "cccl" / name).touch()
    assert name not in stand_ins([Include(name, 1)], "").virtual


@pytest.mark.usefixtures("packages")
def test_a_compiler_may_open_stand_ins_and_what_is_cudas(tmp_path: Path) -> None:
    supplied = stand_ins([Include("mine.h", 1)], "").virtual
    link = tmp_path / "cudart" / "link.h"
    link.symlink_to("/etc/passwd")
    assert is_allowed("mine.h", supplied) and is_allowed(PRELUDE_NAME, supplied)
    assert is_allowed(str(tmp_path / "cudart" / "cuda_fp16.h"), supplied)
    assert is_allowed(str(tmp_path / "cccl" / ".." / "cudart" / "cuda_fp16.h"), supplied)
    for opened in ("/etc/passwd", str(link), str(tmp_path / "cudart" / ".." / "x"), "yours.h"):
        assert not is_allowed(opened, supplied)


@pytest.mark.usefixtures("packages")
def test_of_cudas_own_headers_those_for_the_host_are_empty(tmp_path: Path) -> None:
    (tmp_path / "cudart" / "cuda.h").touch()
    (tmp_path / "cccl" / "cub").mkdir()
    (tmp_path / "cccl" / "cub" / "cub.cuh").touch()
    (tmp_path / "cccl" / "thrust").mkdir()
    (tmp_path / "cccl" / "thrust" / "device_vector.h").touch()
    asked = [Include("cuda.h", 1), Include("thrust/device_vector.h", 2), Include("cub/cub.cuh", 3)]
    (tmp_path / "cccl" / "cub" / "block").mkdir()
    (tmp_path / "cccl" / "cub" / "block" / "block_reduce.cuh").touch()
    found = stand_ins(asked, "using Reduce = cub::BlockReduce<float, 256>;")
    assert found.virtual["cuda.h"] == found.virtual["thrust/device_vector.h"] == "#pragma once\n"
    assert "#include <cub/block/block_reduce.cuh>" in found.virtual["cub/cub.cuh"].splitlines()
    assert found.warnings == ()
