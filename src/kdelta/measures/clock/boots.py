# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of bundles under two kernels as pairs of boots, where they belong together."""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kdelta.measures.clock.results import TimedRun, read_run
from kdelta.spec.errors import UserError

EQUAL = {
    "bundle": "another bundle",
    "workload": "another workload",
    "arguments": "other arguments of the program",
    "machine": "another architecture",
    "cpu_model": "another CPU",
    "microcode": "another microcode",
    "online": "another set of online CPUs",
    "cpu": "another processor of it",
    "smt": "another setting of SMT",
    "boost": "another setting of boost",
    "no_turbo": "another setting of turbo",
    "governor": "another cpufreq governor",
    "driver": "another cpufreq driver",
    "least_khz": "another lowest frequency",
    "most_khz": "another highest frequency",
    "file_system": "another kind of file system",
}
"""Facts that all runs must have alike, and what one is from that has not. What belongs to the
kernel, such as its clock source, may differ: it is part of what is compared.
"""

_CLOCK_SECONDS = 2.0
"""By so much dates may be off: they are whole seconds, and a clock is set now and then."""


def medians(runs: Sequence[TimedRun]) -> dict[str, float]:
    """Return by region the nanoseconds of an iteration, the median over all runs."""
    names = dict.fromkeys(name for run in runs for name in run.ns)
    return {
        name: statistics.median(run.ns[name] for run in runs if name in run.ns) for name in names
    }


class Boot(msgspec.Struct, frozen=True):
    """One boot of a kernel, and its runs."""

    runs: tuple[TimedRun, ...]

    @property
    def when(self) -> int:
        """Return when its first run began, in seconds since 1970."""
        return min(one.facts.when for one in self.runs)

    @property
    def span(self) -> tuple[float, float]:
        """Return when it began, and when its last run ended, in seconds since 1970."""
        return (
            min(one.facts.booted for one in self.runs),
            max(one.facts.when + one.seconds for one in self.runs),
        )

    def ns(self) -> dict[str, float]:
        """Return by region the nanoseconds of an iteration, the median over runs."""
        return medians(self.runs)


class BootPair(msgspec.Struct, frozen=True):
    """A boot of each kernel, one after the other."""

    base: Boot
    other: Boot

    @property
    def is_base_first(self) -> bool:
        """Return whether the base's boot was the first of the two."""
        return self.base.when < self.other.when


class TimedKernels(msgspec.Struct, frozen=True):
    """Boots of two kernels that followed each other, as pairs in the order of time. `alone`: how
    many boots of either are in no pair. `here`: they are runs under the kernel that runs here,
    and no boots; kdelta drew their order.
    """

    pairs: tuple[BootPair, ...]
    alone: tuple[int, int]
    here: bool = False

    def differences(self) -> dict[str, tuple[float, ...]]:
        """Return by region, for each pair that has it on both sides, how the logarithm of its time
        differs, other less base.
        """
        found: dict[str, list[float]] = {}
        for pair in self.pairs:
            base, other = pair.base.ns(), pair.other.ns()
            for name in (one for one in base if one in other):
                if base[name] > 0 and other[name] > 0:
                    found.setdefault(name, []).append(math.log(other[name] / base[name]))
        return {name: tuple(values) for name, values in found.items()}

    @property
    def jumped(self) -> tuple[str, ...]:
        """Return the regions in which the clock of a run jumped."""
        boots = (boot for pair in self.pairs for boot in (pair.base, pair.other))
        return tuple(
            dict.fromkeys(name for boot in boots for run in boot.runs for name in run.jumped)
        )

    @property
    def is_of_fixed_order(self) -> bool:
        """Return whether the same kernel came first in all of several pairs."""
        orders = {one.is_base_first for one in self.pairs}
        return not self.here and len(self.pairs) > 3 and len(orders) == 1


def read_folder(folder: Path) -> list[TimedRun]:
    """Read the runs of one kernel: all files of a folder. UserError for none, and for those of
    several kernels.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder", "kdelta clock judge A B: folders of ./bundle run")
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror}") from error
    if not paths:
        raise UserError(f"{folder} has no file", f"./bundle run >{folder}/1.json")
    runs = [read_run(path) for path in paths]
    first, *others = runs
    for one in others:
        if one.facts.kernel != first.facts.kernel:
            raise UserError(
                f"{one.path} is from another kernel than {first.path}: {_kernel_words(first, one)}",
                "a folder has the runs of one kernel",
            )
    return runs


def paired(base: Sequence[TimedRun], other: Sequence[TimedRun]) -> TimedKernels:
    """Return the boots of both kernels in pairs of neighbours. UserError for runs that should be
    alike and are not, and for boots that both kernels claim.
    """
    must_be_alike([*base, *other])
    ours, theirs = _boots(base), _boots(other)
    if shared := next((one for one in ours if one in theirs), None):
        raise UserError(
            f"{ours[shared].runs[0].path} and {theirs[shared].runs[0].path} are from one boot",
            "a boot has one kernel: reboot between the two",
        )
    boots = [(one, True) for one in ours.values()] + [(one, False) for one in theirs.values()]
    pairs = tuple(_neighbours(sorted(boots, key=lambda one: one[0].when)))
    return TimedKernels(pairs, (len(ours) - len(pairs), len(theirs) - len(pairs)))


def must_follow(base: Sequence[TimedRun], other: Sequence[TimedRun]) -> None:
    """Raise UserError unless the runs show in which order the boots of both kernels were: each had
    ended when the next one began, by the machine's clock and its uptime. One that has no clock
    begins each boot at the same date.
    """
    boots = [*_boots(base).values(), *_boots(other).values()]
    for before, after in itertools.pairwise(sorted(boots, key=lambda one: one.span[0])):
        if after.span[0] < before.span[1] - _CLOCK_SECONDS:
            raise UserError(
                f"{before.runs[0].path} and {after.runs[0].path} are from boots that overlap in"
                " time, by their dates and uptimes: the order of boots is not known",
                "on a machine without a clock, set the date before ./bundle run",
            )


def _neighbours(boots: Sequence[tuple[Boot, bool]]) -> Iterator[BootPair]:
    """Yield pairs of neighbours in time that are of both kernels; with each, whether it is of the
    base. So a boot that is missing costs its pair alone.
    """
    left: tuple[Boot, bool] | None = None
    for boot, is_base in boots:
        if left is None or left[1] is is_base:
            left = boot, is_base
        else:
            yield BootPair(boot, left[0]) if is_base else BootPair(left[0], boot)
            left = None


def _boots(runs: Sequence[TimedRun]) -> dict[str, Boot]:
    found: dict[str, list[TimedRun]] = {}
    for one in runs:
        found.setdefault(one.facts.boot_id, []).append(one)
    return {boot: Boot(tuple(of)) for boot, of in found.items()}


def must_be_alike(runs: Sequence[TimedRun]) -> None:
    """Raise UserError if a fact that must not differ does."""
    first, *others = runs
    for one in others:
        for name, words in EQUAL.items():
            mine, its = getattr(first.facts, name), getattr(one.facts, name)
            if mine != its:
                raise UserError(
                    f"{one.path} is from {words} than {first.path}: {its!r}, not {mine!r}",
                    "what belongs to the machine must be the same in all runs",
                )


def _kernel_words(first: TimedRun, other: TimedRun) -> str:
    facts = first.facts, other.facts
    for name in ("release", "version", "command_line", "build_id"):
        mine, its = (getattr(one, name) for one in facts)
        if mine != its:
            return f"{name.replace('_', ' ')} {its!r}, not {mine!r}"
    return "unknown"
