# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that go on until a clock ends them, so that more instructions are more iterations.

A benchmark that counts what it did in some seconds does more of it under a faster kernel: all of
its user code that repeats is executed more often by one factor, though the code is the same. A
total of such runs says nothing; divided by that factor it does.
"""

from collections.abc import Collection, Mapping
from fractions import Fraction

from kdelta.counts.model import VDSO, is_kernel

TIMERS = frozenset({"it_real_fn", "posix_timer_fn", "alarmtimer_fired", "posix_cpu_timers_work"})
"""Functions of the kernel that are executed where a timer of a program ends."""

CLOCKS = frozenset(
    {
        "__vdso_clock_gettime",
        "__vdso_gettimeofday",
        "__vdso_time",
        "__x64_sys_clock_gettime",
        "__arm64_sys_clock_gettime",
        "hrtimer_nanosleep",
        "hrtimer_wakeup",
    }
)
"""Functions that are executed where a program reads a clock, or waits for one."""

_LEAST = Fraction(1, 2000)
"""How far a factor is from one, at least, to be none by chance: what is read or printed differs."""

_LEAST_TIMED = Fraction(1, 100_000)
"""The same where a timer of the program ended and several functions have that factor."""

_HEAVY = Fraction(1, 1000)
"""Functions that have at least this part of the user code are looked at."""

_MOST = Fraction(4, 5)
"""The part of them that repeats; the rest is the start and the end."""

_ALIKE = Fraction(1, 100)
"""How much of the factor functions may differ by."""

Key = tuple[str, str]
"""(origin, name)"""


def times_more(
    base: Mapping[Key, Fraction], other: Mapping[Key, Fraction], names: Collection[str]
) -> Fraction | None:
    """Return how many times as many iterations the other run did; None if nothing shows that.

    base, other: instructions by function of one program. names: of all functions that either run
    executed. Code that repeats may have more to do: several functions need a clock that was read,
    and one alone a timer that ended.
    """
    ours = {key: value for key, value in base.items() if _is_program(key) and value}
    shared = {key: value for key, value in ours.items() if other.get(key)}
    whole = sum(ours.values(), Fraction(0))
    heavy = {key: value for key, value in shared.items() if value >= _HEAVY * whole}
    if not heavy:
        return None
    most = max(heavy, key=lambda key: heavy[key])
    factor = other[most] / heavy[most]
    far = abs(factor - 1)
    has_timer = not TIMERS.isdisjoint(names)
    if far < (_LEAST_TIMED if has_timer else _LEAST):
        return None
    repeated = [key for key in heavy if abs(other[key] / heavy[key] - factor) <= _ALIKE * far]
    if len(repeated) > 1:
        is_enough = has_timer or not CLOCKS.isdisjoint(names)
    else:
        is_enough = has_timer and far >= _LEAST
    if not is_enough or sum(heavy[key] for key in repeated) < _MOST * whole:
        return None
    return factor


def _is_program(key: Key) -> bool:
    """Whether code is of the program itself, which is the same under both kernels."""
    return not is_kernel(key[0]) and key[0] != VDSO


def clock_bound_text(factor: Fraction, base: Fraction, other: Fraction) -> str:
    """Return in words what such a factor makes of two totals."""
    more = "more" if factor > 1 else "fewer"
    each = float(100 * (other / factor / base - 1))
    return (
        f"a clock ends it: the other run did {abs(float(100 * (factor - 1))):.3g} % {more} "
        f"iterations, and each executes {each:+.3g} %; compare a fixed number of them"
    )
