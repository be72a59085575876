"""Tests of the target of a GPU, and of the notes on what else uses it and affects scores."""

import pytest

from harness.devices.available import arch_named, notes


@pytest.mark.parametrize(
    ("capability", "arch"), [((8, 6), "sm_86"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a")]
)
def test_new_gpus_have_a_target_of_their_own(capability: tuple[int, int], arch: str) -> None:
    assert arch_named(*capability) == arch


@pytest.mark.parametrize(
    ("around", "said"),
    [
        ((False, False, False), []),
        ((True, False, False), ["drives a display, so its scores are less steady: to compare"]),
        ((False, True, False), ["time-limit sooner"]),
        ((False, False, True), ["WSL 2"]),
        ((True, True, True), ["end the desktop session", "time-limit", "WSL 2"]),
    ],
)
def test_each_disturbance_has_a_sentence(around: tuple[bool, bool, bool], said: list[str]) -> None:
    drives_display, ends_long_kernels, wsl = around
    found = notes(drives_display=drives_display, ends_long_kernels=ends_long_kernels, wsl=wsl)
    assert len(found) == len(said)
    assert all(words in sentence for words, sentence in zip(said, found, strict=True))


@pytest.mark.gpu
def test_the_driver_reports_other_uses_of_the_gpu() -> None:
    from harness.devices.cuda.clocks import Clocks

    assert isinstance(Clocks().notes, tuple)
    assert Clocks().read().clock_mhz > 0
