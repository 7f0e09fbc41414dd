# SPDX-License-Identifier: GPL-2.0-or-later
"""All measures besides the path: a new one is a folder, and a line here."""

from collections.abc import Callable

from kdelta.measures.clock import measure as clock
from kdelta.measures.conflicts import measure as conflicts
from kdelta.measures.cycles import measure as cycles
from kdelta.measures.model import Measure, MeasureRequest

MEASURES: dict[str, Callable[[MeasureRequest], Measure | None]] = {
    "cycles": cycles.of_request,
    "conflicts": conflicts.of_request,
    "clock": clock.of_request,
}
"""By their folders: the measure, where a request asks for it."""


def measures_of(asked: MeasureRequest) -> list[Measure]:
    """Return the measures that a request asks for."""
    found = (make(asked) for make in MEASURES.values())
    return [one for one in found if one is not None]
