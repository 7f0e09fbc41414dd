# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions by process as text: who executed how much, and how much of it in the kernel."""

from collections.abc import Iterable

from kdelta.infer.profiles.processes import Processes, ProgramCost
from kdelta.report.lines import finished, wrapped
from kdelta.spec.errors import LabError

_NAME = 24
NOTE = (
    "A process belongs to the program that it executes, from its start or its last exec on; a "
    "shell's child is a shell until then. Ended: how many processes ended as that program. Kernel: "
    "system calls, faults and switches on their behalf; in it: that part of the line. All figures "
    "are instructions; a string operation is one."
)
"""What a process is, and its figures are."""


def processes_text(regions: Iterable[Processes]) -> str:
    """A table for each region. LabError where lines do not add up to the whole."""
    lines: list[str] = []
    for region in regions:
        lines += processes_lines(region)
        lines.append("")
    return finished([*lines, *wrapped(NOTE, "", "")]) if lines else ""


def processes_lines(region: Processes) -> list[str]:
    """The table of one region."""
    whole = region.insns
    rows = [_row(one, whole) for one in region.programs]
    rows += [_row(one, whole, " (other)") for one in region.other]
    rows.append(_line("interrupts", "", 0, region.interrupts, whole))
    user = sum(one.user for one in (*region.programs, *region.other))
    if user + region.residency != whole:
        raise LabError(f"the lines of {region.region} do not add up", "please report it")
    total = _line("total", "", user, region.residency, whole)
    resident = f"{region.residency:,} of {whole:,} instructions"
    found = [
        f"{region.region}, by process",
        "",
        f"  {'program':<{_NAME}}{'ended':>6}{'user':>16}{'kernel':>16}{'all':>8}{'in it':>8}",
        *rows,
        total,
        "",
        f"kernel residency without idle: {resident}, {_percent(region.residency, whole)}",
    ]
    if region.idle_ticks is not None:
        found.append(f"idle: {region.idle_ticks:,} ns of the guest's clock")
    return found


def _row(one: ProgramCost, whole: int, suffix: str = "") -> str:
    return _line(one.program + suffix, str(one.ended), one.user, one.kernel, whole)


def _line(name: str, ended: str, user: int, kernel: int, whole: int) -> str:
    insns = user + kernel
    return (
        f"  {name:<{_NAME}.{_NAME}}{ended:>6}{user:>16,}{kernel:>16,}"
        f"{_percent(insns, whole):>8}{_percent(kernel, insns):>8}"
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"
