# SPDX-License-Identifier: GPL-2.0-or-later
"""All measures besides the path: a new one is a folder, and a line here."""

from collections.abc import Callable, Collection, Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.lab.options import NOT_TIMED
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
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


def measures_of(
    request: msgspec.Struct,
    works: Sequence[Work] = (),
    cpu: CPU | None = None,
    *,
    timed: bool = True,
) -> list[Measure]:
    """Return the measures that a study's request asks for, by those fields that it has.

    works: what is run. cpu: whose model cycles are judged, if any. timed: by the clock, too, if one
    was named. A request that names measures asks for no others.
    """
    lab: LabRequest = getattr(request, "lab", LabRequest())
    asked = MeasureRequest(
        cpu=cpu,
        layouts=getattr(request, "layouts", 0),
        margin=float(getattr(request, "margin", 0)),
        data=lab.data_lines,
        timed=getattr(request, "timed", NOT_TIMED) if timed else NOT_TIMED,
        works=tuple(works),
        guest_cpus=lab.machine.cpus,
    )
    chosen: Collection[str] = getattr(request, "measures", ()) or MEASURES
    found = (make(asked) for name, make in MEASURES.items() if name in chosen)
    return [one for one in found if one is not None]
