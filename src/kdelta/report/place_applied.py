# SPDX-License-Identifier: GPL-2.0-or-later
"""What a relinked kernel was measured to do, beside what was predicted, as text."""

from kdelta.report.layout import failed_lines, labelled, wrapped
from kdelta.report.layout_text import NAME, cut, figure, marked
from kdelta.report.place_model import Applied, AppliedRegion, PlaceReport
from kdelta.spec.identity import short

_COLUMNS = {"shipped": 9, "median": 9, "best": 9, "predicted": 11, "measured": 10}
_PATH = 9
_ALL = "all of a whole run"


def applied_lines(report: PlaceReport) -> list[str]:
    """A section on the relinked kernel, or nothing where none was asked for."""
    found = report.applied
    if found is None:
        return []
    lines = ["", *labelled("relinked", found.kernel.spec)]
    if found.kernel.failure:
        return lines + labelled("", f"no kernel: {found.kernel.failure}")
    lines += labelled("", f"identity {short(found.kernel.identity)}")
    if failed := failed_lines("relinked", found.kernel.failed):
        return [*lines, "", "failed runs", *failed]
    lines += ["", *_table(report, found), "", *_sums(found), "", *_payers(found), *_off(found)]
    return lines


def _table(report: PlaceReport, found: Applied) -> list[str]:
    lines = wrapped(
        "L1I misses, counted while the kernels ran: shipped, and measured in the order; median, "
        "best and predicted are replays; path: instructions an iteration that the relinked one "
        "executes more",
        "",
        "  ",
    )
    words = "".join(f"{word:>{width}}" for word, width in _COLUMNS.items())
    lines.append(f"{'operation':<{NAME}}{words}{'path':>{_PATH}}")
    missing = [one for one in found.regions if _any(one)]
    lines += [_row(marked(one.name, report.unlike), one) for one in missing]
    if len(missing) > 1:
        totals = "".join(
            f"{_whole(found.total(column)):>{width}}" for column, width in _COLUMNS.items()
        )
        lines.append(f"{_ALL:<{NAME}}{totals}")
    quiet = [one for one in found.regions if not _any(one)]
    if quiet:
        lines += wrapped(f"none in these: {', '.join(one.name for one in quiet)}", "", "  ")
    return lines


def _any(one: AppliedRegion) -> bool:
    return bool(one.path) or any(getattr(one, column) for column in _COLUMNS)


def _row(name: str, one: AppliedRegion) -> str:
    cells = "".join(
        f"{figure(getattr(one, column)):>{width}}" for column, width in _COLUMNS.items()
    )
    path = f"{one.path:+.2f}" if one.path else "="
    return f"{cut(name)}{cells}{path:>{_PATH}}" + (" !" if one.pays else "")


def _whole(value: float) -> str:
    """A sum in few digits."""
    return f"{value:.0f}" if value < 1e7 else f"{value / 1e6:.1f}M"


def _sums(found: Applied) -> list[str]:
    """How the order stands to the shipped layout and the median, as a whole and by region."""
    measured = found.total("measured")
    text = "all iterations of all operations together"
    for word, column in (("shipped", "shipped"), ("the median", "median")):
        before = found.total(column)
        if before and measured:
            text += f"; {before / measured:.2f} times fewer than {word}"
    lines = wrapped(text, "", "  ")
    missing = [one for one in found.regions if one.median > 0]
    if not missing:
        return [*lines, "no operation has misses in the median layout"]
    halved = [one for one in missing if one.is_halved]
    lines += wrapped(
        f"of {len(missing)} operations with misses in the median layout {len(halved)} have at most "
        f"half of them{': ' if halved else ''}{', '.join(one.name for one in halved)}",
        "",
        "  ",
    )
    return lines


def _payers(found: Applied) -> list[str]:
    """Who has measured more misses than as shipped, or that nobody has."""
    payers = [one for one in found.regions if one.pays]
    if not payers:
        return ["measured, no operation has more L1I misses than as shipped"]
    lines = ["measured, operations that pay (!): L1I misses an iteration more than as shipped"]
    return lines + [f"  {one.name}: {figure(one.pays)}" for one in payers]


def _off(found: Applied) -> list[str]:
    """Whose prediction was off, or that none was."""
    off = [one for one in found.regions if not one.is_as_predicted]
    if not off:
        return ["every prediction is within 1 % or 50 misses of what was measured"]
    lines = ["predictions off by over 1 % and over 50 misses, all iterations together"]
    return lines + [
        f"  {one.name}: {figure(one.predicted)} predicted, {figure(one.measured)} measured"
        for one in off
    ]
