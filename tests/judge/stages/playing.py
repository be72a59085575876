"""Fake kernels and a fake baseline whose launch times are known, and a fake checker."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.protocol.device import Load, Ready
from harness.protocol.request import Done, Fault
from harness.protocol.timing import (
    Attach,
    Checked,
    CheckLaunch,
    Detach,
    DrawInputs,
    LaunchTime,
    LayOut,
    SharedMatrices,
    TimeLaunch,
    TimingWorkers,
)
from problem.cases import SCALED_GROUPS, UNIFORM
from tests.judge.stages.fakes import launch_time

RIGHT = Checked(error=0.3)
Drift = Callable[[int], float]


@dataclass
class Player:
    """A process whose launches take a known time. The baseline is one, too."""

    table: Table
    ms: float
    slower_when_rescaled: float = 1.0
    host_late_ms: float = 0.02
    attached: bool = False
    as_baseline: bool = False

    def ask(self, request: Any) -> Any:
        match request:
            case Load():
                return Ready()
            case Attach():
                self.attached, self.as_baseline = True, request.baseline
                self.table.last = self
                return Done()
            case Detach():
                self.attached = False
                return Done()
            case TimeLaunch():
                assert self.attached
                self.table.launch_seconds.add(request.seconds)
                return self.table.launch(self)
        raise AssertionError(request)


@dataclass
class Table:
    """The baseline, the players and the checker, and a record of all launches.

    noise: the relative standard deviation of a launch's time.
    drift: the factor on the time of the n-th launch, the same for all players.
    """

    times: Sequence[float]
    baseline_ms: float = 8.0
    noise: float = 0.001
    drift: Drift = lambda launch: 1.0
    check: Callable[[Player, int], Checked] = lambda player, launch: RIGHT
    throttled: Callable[[int], tuple[str, ...]] = lambda launch: ()
    seed: int = 1
    last: Player | None = None
    inputs: str = UNIFORM
    drawn: list[tuple[Player, str]] = field(default_factory=list)
    """The player and the inputs of each launch."""
    launch_seconds: set[float] = field(default_factory=set)
    """The time limits of the launches."""

    def __post_init__(self) -> None:
        self.generator = random.Random(self.seed)
        self.baseline = Player(self, self.baseline_ms)
        self.players = [Player(self, ms) for ms in self.times]

    @property
    def launches(self) -> list[Player]:
        return [player for player, _ in self.drawn]

    @property
    def workers(self) -> list[TimingWorkers]:
        return [TimingWorkers(each, self.baseline, self) for each in self.players]

    def launch(self, player: Player) -> LaunchTime | Fault:
        self.drawn.append((player, self.inputs))
        self.last = player
        number = len(self.launches)
        slower = player.slower_when_rescaled if self.inputs == SCALED_GROUPS else 1.0
        ms = player.ms * slower * self.drift(number)
        ms *= math.exp(self.generator.gauss(0, self.noise))
        return launch_time(ms, ms + player.host_late_ms, self.throttled(number))

    def ask(self, request: Any) -> Any:
        """Answer as the checker."""
        match request:
            case LayOut():
                return SharedMatrices(arguments=request.arguments, handles=(), offsets=())
            case DrawInputs():
                self.inputs = request.inputs
                return Done()
            case CheckLaunch():
                assert self.last is not None
                return self.check(self.last, len(self.launches))
        raise AssertionError(request)
