# SPDX-License-Identifier: GPL-2.0-or-later
"""A clock without guests, for which an instruction takes 2 ns; it notes what it timed. How its
verdicts fit what was expected is as by the real one.
"""

from collections.abc import Sequence

import pytest

from kdelta.counts.model import merged_regions
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.measures.clock.fit import Expected, expected_of, fitted
from kdelta.measures.model import Judgement, Measure, MeasureRequest, RunPair
from kdelta.measures.registry import MEASURES
from kdelta.report.measured import Effect
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions


class FakeClock(Measure):
    """Times any two kernels; `refused` and `broken` say why it cannot."""

    name = "times"
    unit = "nanoseconds"
    where = " by the clock"

    def __init__(self) -> None:
        self.asked: list[MeasureRequest] = []
        self.timed: list[tuple[Kernel, Kernel]] = []
        self.machines: list[MachineOptions] = []
        self.expected: list[dict[str, Expected]] = []
        self.checked: list[str] = []
        self.refused = ""
        self.broken = ""

    def of_request(self, asked: MeasureRequest) -> Measure | None:
        """Return the clock where one is named, as the real one is."""
        self.asked.append(asked)
        return self if asked.timed.clock else None

    def check(self, _lab: Lab, kernels: Sequence[Kernel]) -> None:
        """Note the kernels; UserError if a test wants that."""
        self.checked += [one.spec for one in kernels]
        if self.refused:
            raise UserError(self.refused)

    async def measure(self, lab: Lab, pair: RunPair) -> Judgement | None:
        """Return two nanoseconds for each instruction, or a note if a test wants that."""
        assert pair.base.kernel is not None
        assert pair.other.kernel is not None
        self.timed.append((pair.base.kernel, pair.other.kernel))
        self.machines.append(lab.request.machine)
        if self.broken:
            return Judgement(self.found((), [f"not timed: {self.broken}"]))
        base, other = (
            {
                name: 2.0 * float(one.mean_own_insns())
                for name, one in merged_regions(side.counts[0]).items()
            }
            for side in (pair.base, pair.other)
        )
        effects = [_effect(name, ns, other[name]) for name, ns in base.items()]
        found = self.found(effects, [f"{len(self.timed)} pairs of boots"])
        self.expected.append(expected_of(pair, by_model=True))
        return Judgement(fitted(found, self.expected[-1], 0.01))


def _effect(name: str, before: float, after: float) -> Effect:
    change = after / before - 1
    word = Word.SLOWER if change > 0 else Word.FASTER if change < 0 else Word.SAME
    ends = Interval(before, before), Interval(after, after)
    return Effect(name, word, *ends, Interval(change, change))


def set_clock(patch: pytest.MonkeyPatch) -> FakeClock:
    """Return the clock that studies are given from now on."""
    clock = FakeClock()
    patch.setitem(MEASURES, "clock", clock.of_request)
    return clock
