# SPDX-License-Identifier: GPL-2.0-or-later
"""What a calibration is given, and what it finds: prices with intervals, and how good they are."""

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.cpus.model import MISPREDICTIONS

F64 = npt.NDArray[np.float64]

PREDICTABLE_INSNS = 2000
"""Where so many instructions go by between two mispredictions, flow is predictable."""

LEAST_LINKS = 5
"""Of a program, for its links to say anything."""


class ProgramRows(msgspec.Struct, frozen=True, eq=False):
    """The links of one program, timed and replayed: all figures are of one iteration (pass).

    flow: "fixed", "random", "mixed" or "loop". cycles (n_links,): core cycles by a clock. noise: by
    how many cycles the timing of one link differs when it is taken again. events: mechanism ->
    (n_links,) how often that happened, by replay. insns: executed instructions. data: mechanism
    whose count no link changes (a miss of data) -> its count. code: programs of the same code
    execute the same functions in another order, or on other data.
    """

    name: str
    flow: str
    cycles: F64
    noise: float
    events: dict[str, F64]
    insns: float = 0.0
    data: dict[str, float] = {}
    code: str = ""

    @property
    def predictable(self) -> bool:
        """Whether a predictor learns its flow: by the mispredictions that were replayed, or else by
        the order of its calls.
        """
        replayed = [self.events[name] for name in MISPREDICTIONS if name in self.events]
        if replayed and self.insns > 0:
            return float(sum(float(of.mean()) for of in replayed)) * PREDICTABLE_INSNS < self.insns
        return self.flow not in {"random", "mixed"}


class FittedPrice(msgspec.Struct, frozen=True):
    """What one of a kind costs, in core cycles: the best value, and the interval that holds it.

    programs: of how many programs the links differ in it by more than the noise (of a price that is
    derived from differences between programs: by how many programs).
    """

    name: str
    value: float
    low: float
    high: float
    programs: int = 0


class ProgramFit(msgspec.Struct, frozen=True):
    """How well links of one program are distinguished by prices that were fitted to all others.

    cycles: of an iteration, the median of its links. spread: most less least cycles of
    its links, and predicted the same by prediction. rank: Spearman's rank correlation of measured
    and predicted cycles, None where all are equal; plain_rank: of measured cycles and plain misses
    of the L1I. explained: share of the variance of cycles that the prediction takes away (may be
    negative). noise: as given, above_noise: whether the spread is more than twice that.
    predictable: see ProgramRows.
    """

    name: str
    flow: str
    links: int
    insns: float
    cycles: float
    spread: float
    predicted_spread: float
    noise: float
    rank: float | None
    plain_rank: float | None
    explained: float | None
    predictable: bool

    @property
    def above_noise(self) -> bool:
        """Whether there is anything to be explained."""
        return self.spread > 2 * self.noise


class LeftOut(msgspec.Struct, frozen=True):
    """A mechanism that is no part of the fit. gain: by which share the error of leave-one-out
    predictions would be smaller with it; why: in words. most: what it costs at most, in cycles, as
    its interval would end if it were in the fit; None where no link changes it.
    """

    name: str
    gain: float
    why: str
    most: float | None = None


class Contribution(msgspec.Struct, frozen=True):
    """A mechanism in the fit: by which share leave-one-out errors are less with it."""

    name: str
    gain: float


class Fitted(msgspec.Struct, frozen=True):
    """A calibration. prices: of mechanisms that are kept, by name; between: of what links do not
    tell, from the differences between programs. base_rate: cycles an instruction where nothing is
    missed; its interval is that of the programs. quality: each program predicted by prices of all
    others.
    """

    prices: dict[str, FittedPrice]
    quality: tuple[ProgramFit, ...]
    contributions: tuple[Contribution, ...]
    left_out: tuple[LeftOut, ...]
    between: dict[str, FittedPrice] = {}
    base_rate: FittedPrice | None = None
