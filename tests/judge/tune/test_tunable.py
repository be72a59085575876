"""The constants that a file lets vary are found, and set without another change."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compiling.source import parse
from harness.judge.tune.tunable import Setting, find_tunables
from harness.protocol.errors import UsageError

TILE = Path(__file__).with_name("tile.cu").read_text(encoding="utf-8")


def variant(**changed: int | bool) -> Setting:
    return {**find_tunables(TILE).written, **changed}


def test_constants_are_found_wherever_one_may_stand() -> None:
    tunables = find_tunables(TILE)
    assert {each.constant.name: (each.written, each.values) for each in tunables.tuned} == {
        "BM": (128, (64, 128, 256)),
        "BN": (64, (64, 128)),
        "VECTORS": (4, (2, 4)),
        "TM": (8, (4, 8)),
        "SERPENTINE": (True, (True, False)),
        "shift": (-2, (-2, -1, 0)),
    }
    assert tunables.count == 3 * 2 * 2 * 2 * 2 * 3


def test_other_values_are_put_in_and_the_launch_line_follows() -> None:
    changed = find_tunables(TILE).source(variant(BM=256, VECTORS=2, SERPENTINE=False, shift=0))
    expected = (
        TILE.replace("BM = 128;", "BM = 256;")
        .replace("VECTORS  4 ", "VECTORS  2 ")
        .replace("SERPENTINE = true", "SERPENTINE = false")
        .replace("shift = -2;", "shift = 0;")
        .replace("solve: tile=128x64 shared_memory=9216", "solve: tile=256x64 shared_memory=15360")
    )
    assert changed == expected
    assert parse(changed).launch.tile_rows == 256


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@given(data=st.data())
def test_every_variant_can_be_turned_back_into_the_file(newline: str, data: st.DataObject) -> None:
    text = TILE.replace("\n", newline)
    tunables = find_tunables(text)
    setting = {
        each.constant.name: data.draw(st.sampled_from(each.values)) for each in tunables.tuned
    }
    changed = find_tunables(tunables.source(setting))
    assert changed.written == setting
    assert changed.source(tunables.written) == text


def test_the_unchanged_file_comes_before_all_other_combinations() -> None:
    tunables = find_tunables(TILE)
    settings = tunables.settings(limit=1000, seed=1)
    assert len(settings) == len({tuple(setting.items()) for setting in settings}) == 144
    assert settings[0] == tunables.written and tunables.source(settings[0]) == TILE
    # A value of the file that is not listed is tried as well.
    tunables = find_tunables("constexpr int BK = 4;  // tune: 8 16\n")
    assert tunables.count == 3
    assert tunables.settings(limit=10, seed=1) == [{"BK": 4}, {"BK": 8}, {"BK": 16}]


def test_a_sample_is_repeated_by_its_seed() -> None:
    lines = [f"constexpr int C{i} = 0;  // tune: 0 1 2 3 4 5 6 7 8 9\n" for i in range(25)]
    tunables = find_tunables("".join(lines))
    assert tunables.count == 10**25
    sample = tunables.settings(limit=50, seed=3)
    assert len({tuple(setting.items()) for setting in sample}) == len(sample) == 50
    assert sample[0] == tunables.written
    assert sample == tunables.settings(limit=50, seed=3) != tunables.settings(limit=50, seed=4)
    assert find_tunables(TILE).settings(limit=1, seed=1) == [find_tunables(TILE).written]
    nearly_all = find_tunables(TILE).settings(limit=143, seed=1)
    assert len({tuple(setting.items()) for setting in nearly_all}) == 143


with Path(__file__).with_name("wrong_comments.csv").open(encoding="utf-8", newline="") as file:
    WRONG_COMMENTS = [(row["text"], row["sentence"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("text", "sentence"), WRONG_COMMENTS)
def test_a_wrong_comment_gets_a_sentence_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        find_tunables(text)


CONSTANT = "constexpr int BM = 16;  // tune: 0 16 32\n"


def test_a_launch_line_of_too_large_a_number_gets_a_sentence() -> None:
    squares = (f"constexpr int C{i} = C{i - 1} * C{i - 1};\n" for i in range(1, 30))
    template = "constexpr int C0 = BM;\n// solve: tile=16x16\n// tune: solve tile={C29}x16\n"
    with pytest.raises(UsageError, match="too large a number"):
        find_tunables(CONSTANT + "".join(squares) + template)


def test_a_template_that_fails_for_one_variant_names_it() -> None:
    text = f"{CONSTANT}// solve: tile=16x16\n// tune: solve tile={{BM}}x{{256 / BM}}\n"
    with pytest.raises(UsageError, match=r"line 3: `256 / BM` divides by zero \(with BM=0\)"):
        find_tunables(text).source({"BM": 0})


@pytest.mark.parametrize(
    "line",
    [
        "constexpr int N = 4; //tune: 2 4",
        "#define N 4 //tune: 2 4",
        "#define N 4 /* four */ // tune: 2 4",
        "#define FLAG\n#define N 4 // tune: 2 4",
        "#define OTHER 7\nconstexpr int N = 4; // tune: 2 4",
    ],
)
def test_a_comment_is_found_however_it_is_written(line: str) -> None:
    tunables = find_tunables(line)
    (only,) = tunables.tuned
    assert (only.constant.name, only.written, only.values) == ("N", 4, (2, 4))
    assert tunables.source({"N": 2}) == line.replace("N = 4", "N = 2").replace("N 4", "N 2")
