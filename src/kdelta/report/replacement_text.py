# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses under the CPU's own replacement policy, and beside them those under LRU, as text."""

from collections.abc import Callable, Sequence

from kdelta.infer.replacement import ALIKE, Replaced
from kdelta.infer.sensitivity import Distribution
from kdelta.report.layout import wrapped

_HOW = {"random": "at random", "round-robin": "in turn"}
_NAME, _FIGURE = 20, 9


def replacement_lines(
    title: str, rows: Sequence[tuple[str, Replaced]], figure: Callable[[float], str]
) -> list[str]:
    """A table of one kind of misses, whose name is `title`: of each region the median layout and
    the shipped one, under either policy. Regions without any misses are left out.
    """
    held = [(name, one) for name, one in rows if one.own.most or one.lru.most]
    if not held:
        return []
    how = _HOW.get(held[0][1].policy, held[0][1].policy)
    text = (
        f"{title}: this cache replaces {how}; beside it, if the least recently used left (LRU). "
        f"rho: rank correlation of the layouts under both; * below {ALIKE:g}: it hangs on the "
        "policy which layouts are good"
    )
    lines = wrapped(text, "", "  ")
    columns = f"{'median':>{_FIGURE}}{'shipped':>{_FIGURE}}{'p':>5}"
    lines.append(f"{'':<{_NAME + len(columns)}}   LRU")
    lines.append(f"{'operation':<{_NAME}}{columns}   {columns}{'rho':>8}")
    for name, one in held:
        first = f"{name:<{_NAME}}" if len(name) < _NAME else f"{name}\n{'':<{_NAME}}"
        rho = "-" if one.correlation is None else f"{one.correlation:.2f}"
        star = "*" if one.hangs else ""
        lines.append(f"{first}{_cells(one.own, figure)}   {_cells(one.lru, figure)}{rho:>8}{star}")
    return lines


def _cells(found: Distribution, figure: Callable[[float], str]) -> str:
    shown = "".join(f"{figure(value):>{_FIGURE}}" for value in (found.median, found.shipped))
    return f"{shown}{f'p{found.percentile:.0f}':>5}"
