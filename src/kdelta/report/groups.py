# SPDX-License-Identifier: GPL-2.0-or-later
"""How the control groups differ that the programs of several kernels ran in."""

from collections.abc import Sequence

from kdelta.report.model import Controllers
from kdelta.report.words import listed

_WITHOUT = {
    "memory": "memory is not charged",
    "pids": "tasks are not counted",
    "cpu": "CPU time is not shared by groups",
}
"""What a kernel does not do for programs in a group without that controller."""


def groups_text(kernels: Sequence[tuple[str, Controllers]]) -> str:
    """Return in words how the controllers of kernels differ, and what some of them do not do.

    kernels: by what a report calls them. Empty where they are alike, or known of one at most.
    """
    known = [(who, found) for who, found in kernels if found is not None]
    some = {name for _, found in known for name in found}
    every = [*(name for name in _WITHOUT if name in some), *sorted(some.difference(_WITHOUT))]
    alike: dict[frozenset[str], list[str]] = {}
    for who, found in known:
        alike.setdefault(frozenset(found), []).append(who)
    if len(alike) < 2:
        return ""
    most = max(map(len, alike))
    with_ = ", ".join(
        f"{listed(who)} with {_named([one for one in every if one in found], most)}"
        for found, who in alike.items()
    )
    without = "; ".join(
        f"in {listed(who)}, {listed([_WITHOUT.get(one, f'{one} is off') for one in missing])}"
        for found, who in alike.items()
        if (missing := [one for one in every if one not in found])
    )
    return f"{with_}: {without}"


def _named(controllers: Sequence[str], most: int) -> str:
    if not controllers:
        return "none"
    return listed(controllers) + (" alone" if len(controllers) == 1 < most else "")
