# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a CPU's prices of misses were measured, on what, when, and how well they predict."""

from kdelta.cpus.model import CPU, Calibration

_UNKNOWN = ("", "0")
"""What a machine without an id has for its hash."""


def calibrated_on(found: Calibration | None) -> str:
    """In words: calibrated on what, when, by how much, and the rank correlation reached."""
    if found is None:
        return "not calibrated"
    least, median = found.rank_correlation
    return (
        f"calibrated on {found.host}, {found.when[:10]}, by {found.programs} programs of "
        f"{found.relinks} links each; rank correlation of predicted and measured cycles where "
        f"branches are not predictable: least {least:.2f}, median {median:.2f}"
    )


def of_another_machine(found: Calibration | None, here: str) -> bool:
    """Whether another machine than that of this hash was calibrated, as far as both are known."""
    known = found is not None and found.machine not in _UNKNOWN and here not in _UNKNOWN
    return known and found is not None and found.machine != here


def calibrated_shortly(found: Calibration) -> str:
    """On what, when, and the rank correlation reached."""
    least, median = found.rank_correlation
    return (
        f"calibrated on {found.host}, {found.when[:10]}, rank correlation {median:.2f} "
        f"(least {least:.2f})"
    )


def prices_word(cpu: CPU) -> str:
    """For a table: how many of the prices of misses were calibrated, of how many."""
    known = [price.calibrated for price in cpu.misses.values()]
    return f"{sum(known)}/{len(known)}" if any(known) else "none"
