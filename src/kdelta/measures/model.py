# SPDX-License-Identifier: GPL-2.0-or-later
"""What a measure is: something that a change of a kernel can cost, region by region."""

import functools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.cpus.model import CPU
from kdelta.infer.effects.effects import Effects
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.gains import PathGain
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.options import NOT_TIMED, TimedBy
from kdelta.lab.progress import Progress
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.report.measured import Effect, MeasuredEffects


class RunSide(msgspec.Struct, frozen=True):
    """One kernel and its runs; `counts` has those that went well. No kernel: `failure` says why."""

    spec: str
    kernel: Kernel | None
    done: tuple[RunResult, ...] = ()
    failure: str = ""

    @property
    def counts(self) -> tuple[RunCounts, ...]:
        """Return what the runs counted that went well."""
        return tuple(done.counts for done in self.done if done.counts is not None)


class RunPair(msgspec.Struct, frozen=True):
    """What a measure judges: runs of one workload under two kernels.

    path     the effects on the path, as far as they are known
    regions  the only ones to judge; None for all
    judged   what measures found that are asked before this one, in the order of the registry
    show     takes the effects on the path so far, while more runs are made
    """

    base: RunSide
    other: RunSide
    path: Effects = Effects((), ())
    regions: tuple[str, ...] | None = None
    judged: tuple["Judgement", ...] = ()
    show: Callable[[Effects], None] = lambda _: None

    @property
    def workload(self) -> str:
        """Return what both ran."""
        return self.base.done[0].run.workload


class Judgement(msgspec.Struct, frozen=True):
    """What a measure returns: effects, and in `detail` what its own sections show besides."""

    found: MeasuredEffects
    detail: msgspec.Struct | None = None


class MeasureRequest(msgspec.Struct, frozen=True):
    """What is asked of measures: the CPU that was named, if any; how many layouts of a kernel are
    drawn; the margin as a fraction; whether misses of data count.

    timed       by which clock operations are timed, if by any
    works       what is run
    guest_cpus  how many CPUs guests have
    """

    cpu: CPU | None = None
    layouts: int = 0
    margin: float = 0.0
    data: bool = False
    timed: TimedBy = NOT_TIMED
    works: tuple[Work, ...] = ()
    guest_cpus: int = 1

    def work(self, workload: str) -> Work | None:
        """Return what is run of a workload, as far as it was passed."""
        return next((one for one in self.works if one.name == workload), None)


class Measure:
    """Something that a change can cost. Studies ask the path, and then all measures of a request,
    of which they know none by name. One overrides what it can answer.

    name    a plural, as in "model cycles are not known"
    unit    of its figures, a plural
    where   what follows the name of a region that is judged by it: " on zen4"
    margin  the part of a figure below which a difference is not worth a kernel, in a search
    weighs  see MeasuredEffects
    searched  whether series and ablate search by its figures, too, as bisect does by all measures'
    """

    name: str
    unit: str
    margin: Fraction = Fraction(0)
    weighs: bool = True
    searched: bool = False

    @property
    def where(self) -> str:
        return f" ({self.name})"

    def found(self, effects: Iterable[Effect] = (), notes: Iterable[str] = ()) -> MeasuredEffects:
        """Return effects as its own."""
        effects, notes = tuple(effects), tuple(notes)
        return MeasuredEffects(self.name, self.unit, effects, self.where, notes, self.weighs)

    def recording(self, asked: LabRequest) -> LabRequest:
        """Return the request of runs, with what it needs recorded."""
        return asked

    def expect(self, progress: Progress, pairs: int) -> None:
        """Report how much work so many pairs will be."""

    def check(self, lab: Lab, kernels: Sequence[Kernel]) -> None:
        """Raise UserError where it cannot measure these kernels here; nothing was run so far."""

    def lacks(self, lab: Lab, side: RunSide) -> str:
        """Return why it can say nothing of a kernel; empty if it can."""
        return ""

    def judge(self, lab: Lab, pair: RunPair) -> Judgement | None:
        """Return the effects from a base to another kernel, of what is kept of their runs; None
        where that says nothing.
        """
        return None

    async def measure(self, lab: Lab, pair: RunPair) -> Judgement | None:
        """Return the same after having run what it takes."""
        return self.judge(lab, pair)

    def passed_on(self, pair: RunPair, found: Judgement) -> RunPair:
        """Return a pair as measures are given it that are asked after this one."""
        return msgspec.structs.replace(pair, judged=(*pair.judged, found))

    def doubted(self, found: Judgement, gains: Sequence[PathGain]) -> Judgement:
        """Return a judgement without verdicts that these gains could turn round: what paths of the
        CPU could add to a kernel, which the emulator cannot offer.
        """
        return found

    def figures(self, lab: Lab, side: RunSide) -> dict[str, Estimate]:
        """Return by region what one kernel costs; nothing where that is no figure of one kernel. A
        search builds kernels by it.
        """
        return {}


async def measured(measures: Sequence[Measure], lab: Lab, pair: RunPair) -> list[Judgement | None]:
    """Return what all measures say of a pair, each of which knows what those before it found, and
    what the pair comes with.
    """
    found: list[Judgement | None] = []
    for measure in measures:
        judged = await measure.measure(lab, pair)
        pair = measure.passed_on(pair, judged) if judged else pair
        found.append(judged)
    return found


def recording(asked: LabRequest, measures: Sequence[Measure]) -> LabRequest:
    """Return the request of runs, with what all these measures need recorded."""
    return functools.reduce(lambda request, one: one.recording(request), measures, asked)
