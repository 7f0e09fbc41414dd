# SPDX-License-Identifier: GPL-2.0-or-later
"""What profiles and their differences share: words, sums of functions, and lines of figures."""

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import CONTEXTS
from kdelta.infer.profiles.profile import FunctionLine, Modelled, Part, Selection, Sort, summed
from kdelta.report import figures, words
from kdelta.report.lines import WIDTH
from kdelta.studies.profile.model import ProfileReport

COUNTED = "instructions; a string operation (rep movs) is one, and its bytes are apart"
INSNS = 13
PERCENT = 7

WORK = {"own": "own work", **words.OTHERS}
CODE = {Part.KERNEL: "kernel", Part.MODULES: "modules", Part.USER: "user code"}


def left_out_text(selection: Selection) -> str:
    """What of these is not among the functions that follow, and how to see it."""
    left = {
        "--context all": [WORK[one] for one in CONTEXTS if one not in selection.contexts],
        "--code": [CODE[part] for part in Part if part not in selection.parts],
    }
    said = [f"{' and '.join(names)} ({option})" for option, names in left.items() if names]
    return f"Left out of the functions: {', '.join(said)}." if said else ""


def named_line(cells: str, name: str) -> list[str]:
    """Figures and a name after them, which has the next line where there is no room."""
    if len(cells + name) <= WIDTH:
        return [cells + name]
    return [cells, f"{'':{max(0, min(PERCENT + INSNS, WIDTH - len(name)))}}{name}"]


def usual_columns(report: ProfileReport, by: Sort) -> tuple[Sort, ...]:
    """Those that fit besides instructions and a name: what they are ranked by is among them."""
    known = [line.modelled for region in report.regions for line in region.lines if line.modelled]
    modelled, data = bool(known), any("l1d" in one.misses for one in known)
    found = [Sort.LOADS, Sort.STORES]
    found += [] if modelled or report.calls != "none" else [Sort.STRING, Sort.SPECIAL]
    if modelled:
        found = [Sort.MISSES, *([Sort.L1D, Sort.DTLB] if data else []), Sort.CYCLES]
    if report.calls != "none" and not data:
        found = [Sort.INCLUSIVE, *([] if modelled else [Sort.CALLS]), *found]
    if by not in found and by is not Sort.INSNS:
        found[-1] = by
    return tuple(found)


def as_one(lines: Sequence[FunctionLine]) -> FunctionLine:
    """All of these as if they were one function. What they called together is not known."""
    return summed(
        [
            msgspec.structs.replace(line, origin="", name="", inclusive=None, calls=None)
            for line in lines
        ]
    )[0]


def cycles(one: Modelled) -> str:
    """From how many model cycles to how many."""
    return "-".join(figures.short(Fraction(round(value))) for value in (one.low, one.high))


def share(count: int | None, whole: int) -> str:
    """A part of a whole; nothing where it is not known."""
    return "" if count is None or not whole else f"{100 * count / whole:.1f}%"
