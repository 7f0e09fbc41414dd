# SPDX-License-Identifier: GPL-2.0-or-later
"""The outline of whatever is stored."""

from collections.abc import Callable, Mapping

from kdelta.report.outline import Outline
from kdelta.report.outlines.compare import compare_outline, gate_outline
from kdelta.report.outlines.crossing import crossing_outline
from kdelta.report.outlines.diff import diff_outline
from kdelta.report.outlines.history import history_outline
from kdelta.report.outlines.placement import layout_outline, place_outline
from kdelta.report.outlines.run import run_outline
from kdelta.report.outlines.searches import ablate_outline, bisect_outline, series_outline
from kdelta.report.stored import Stored


def outline_of(stored: Stored) -> Outline:
    """The outline of what is stored. LabError if what is printed of it does not add up."""
    return OUTLINES[stored.kind](stored)


OUTLINES: Mapping[str, Callable[[Stored], Outline]] = {
    "ablate": ablate_outline,
    "bisect": bisect_outline,
    "compare": compare_outline,
    "crossing": crossing_outline,
    "diff": diff_outline,
    "gate": gate_outline,
    "history": history_outline,
    "layout": layout_outline,
    "place": place_outline,
    "run": run_outline,
    "series": series_outline,
}
"""By kind."""
