# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions that a CPU retired next to those of an exact run, and what their difference is of.

All figures are instructions of one iteration of a region, where no other unit is named.
"""

import msgspec

MARKS, READINGS, INTERRUPTS = "marks", "reading the clock", "interrupts"
"""What of a difference is known."""

_MOST_A_SAMPLE = 250
"""Instructions of a sample besides its iterations: two readings of the clock or more, and what is
done about them. 90 to 210 on arm64 (regions of tests/studies/counters/test_counters_guest.py).
"""
_FEW = 0.002
"""Of the instructions of an operation, what needs no mention."""

_ALL_OF_IT = 0.98
"""Of a region's time, what is as good as all of it."""


class Retired(msgspec.Struct, frozen=True):
    """What a CPU's counters say of a region.

    user, kernel  instructions; None where that is not counted
    ns            the time that an iteration took
    iterations    of a pass, and
    samples       into how many samples they were put, for each of which the clock was read
    counted       the part of the region's time in which its task was counted
    shared        whether counters took turns, so that figures are estimates
    """

    user: float | None
    kernel: float | None
    ns: float
    iterations: float
    samples: float
    counted: float = 1.0
    shared: bool = False


class ExactCount(msgspec.Struct, frozen=True):
    """The same by exact runs: means over them.

    spread             how far user and kernel together differ between runs
    string_iterations  of string instructions, besides the first
    faults             page faults that the kernel handled
    switches           how often it switched to a measured task
    group              instructions of functions that account and charge to control groups
    """

    user: float
    kernel: float
    spread: float = 0.0
    string_iterations: float = 0.0
    faults: float = 0.0
    switches: float = 0.0
    group: float = 0.0


class Attributed(msgspec.Struct, frozen=True):
    """The instructions of user or kernel. `parts`: what of the difference is known, by its name."""

    counted: float
    exact: float
    parts: dict[str, float] = {}

    @property
    def left(self) -> float:
        """Return the part of the difference that is not known."""
        return round(self.counted - self.exact - sum(self.parts.values()), 6)


class CheckedOperation(msgspec.Struct, frozen=True):
    """One operation. user, kernel: None where that is not counted; agrees: whether what is left is
    within the margin and the spread of exact runs; why: what may be the reason where it is not.
    """

    region: str
    retired: Retired
    exact: ExactCount
    user: Attributed | None
    kernel: Attributed | None
    agrees: bool
    why: tuple[str, ...] = ()

    @property
    def left(self) -> float:
        """Return what is left of the difference of user and kernel."""
        return sum(one.left for one in (self.user, self.kernel) if one)

    @property
    def exact_insns(self) -> float:
        """Return the exact count of what was counted."""
        return sum(one.exact for one in (self.user, self.kernel) if one)


def check_operation(
    region: str,
    retired: Retired,
    exact: ExactCount,
    margin: float,
    *,
    marks: float | None,
    interrupts: float,
) -> CheckedOperation:
    """Return what counters and exact runs say of an operation, with the difference attributed.

    margin: a fraction of the exact count. marks: user instructions of an iteration that does
    nothing, beyond the exact ones; None if that is not known. interrupts: instructions a nanosecond
    of handlers on the time of the exact runs' tasks, which counters take for the task's own.
    """
    user = _user(retired, exact, marks)
    kernel = None
    if retired.kernel is not None:
        counted_ns = retired.ns * retired.counted
        kernel = Attributed(retired.kernel, exact.kernel, {INTERRUPTS: interrupts * counted_ns})
    known = [one for one in (user, kernel) if one]
    within = margin * sum(one.exact for one in known) + exact.spread
    agrees = bool(known) and sum(abs(one.left) for one in known) <= within
    why = () if agrees else _why(retired, exact, marks)
    return CheckedOperation(region, retired, exact, user, kernel, agrees, why)


def _user(retired: Retired, exact: ExactCount, marks: float | None) -> Attributed | None:
    """Return the user's instructions. What is more than marks is taken for readings of the clock as
    far as these can be as many.
    """
    if retired.user is None:
        return None
    found = Attributed(retired.user, exact.user, {} if marks is None else {MARKS: marks})
    most = _MOST_A_SAMPLE * retired.samples / retired.iterations
    if marks is not None and 0 <= found.left <= most:
        found = Attributed(found.counted, found.exact, {MARKS: marks, READINGS: found.left})
    return found


def _why(retired: Retired, exact: ExactCount, marks: float | None) -> tuple[str, ...]:
    insns = exact.user + exact.kernel
    reasons = {
        "what a mark costs is not known": marks is None,
        f"counted in {100 * retired.counted:.0f} % of its time: counters stop while other "
        "tasks run, and before a task has ended": retired.counted < _ALL_OF_IT,
        f"{exact.faults:.3g} page faults an iteration, each of which may map more or fewer pages": (
            exact.faults >= 0.01
        ),
        f"{exact.switches:.3g} task switches an iteration, in which counters stop": (
            exact.switches >= 0.01
        ),
        f"up to {exact.group:.0f} instructions are of the exact runs' control group": (
            exact.group >= _FEW * insns
        ),
        "counters took turns: the count is an estimate": retired.shared,
    }
    found = tuple(text for text, applies in reasons.items() if applies)
    return found or ("not explained: the notes have what else differs between both machines",)
