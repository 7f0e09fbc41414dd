# SPDX-License-Identifier: GPL-2.0-or-later
"""What each link of a traced program does to a CPU: its rows of a calibration."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import U64
from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU
from kdelta.infer.calibration.model import F64, ProgramRows
from kdelta.replay.as_executed import data_events
from kdelta.replay.front_end.replay import EVENTS, PreparedFrontEnd
from kdelta.replay.programs import placed_program, program_layouts, program_text
from kdelta.replay.simulate import PreparedTrace
from kdelta.spec.errors import LabError
from kdelta.spec.timings import TimedLink, TimedProgram

_OWN = CONTEXTS.index("own")
_MAD = 1.4826  # from the median of absolute differences to a standard deviation


class LinkCounts(msgspec.Struct, frozen=True, eq=False):
    """What was counted of a program, an iteration: events -> (n_links,), insns, data -> one count
    for all links.
    """

    events: dict[str, F64]
    insns: float
    data: dict[str, float]


def counted_links(trace: Trace, links: Sequence[Path], cpu: CPU) -> LinkCounts:
    """Replays the trace of the first link under the addresses of all of them.

    Of what the program does itself; interrupts and other tasks are not counted, since a clock's
    least times have none. UserError for links that are not of one program.
    """
    texts = [program_text(path.name, path.read_bytes()) for path in links]
    placement = placed_program(trace, texts[0])
    layouts = program_layouts(placement, texts[0], texts)
    iterations = max(1, trace.iterations)
    counts: dict[str, npt.NDArray[Any]] = dict(
        _plain(PreparedTrace(trace, placement.placed), layouts, cpu)
    )
    if cpu.front_end is not None and trace.jumps is not None:
        found = PreparedFrontEnd(trace, placement.placed).replay(layouts, cpu)
        counts |= {event: found.total[:, k, _OWN] for k, event in enumerate(EVENTS)}
    data = data_events(trace, cpu) if trace.data_virtual is not None else {}
    return LinkCounts(
        events={name: np.asarray(of, np.float64) / iterations for name, of in counts.items()},
        insns=trace.executed_insns(_OWN) / iterations,
        data={name: count / iterations for name, count in data.items()},
    )


def _plain(prepared: PreparedTrace, layouts: U64, cpu: CPU) -> dict[str, U64]:
    """Misses without a front end. The L2 has code alone, by virtual addresses."""
    caches = {"l1i": cpu.l1i, "l2": cpu.l2, "itlb": cpu.itlb_small or cpu.itlb}
    found = {
        name: prepared.replay(layouts, cache, by_function=False).total[:, _OWN]
        for name, cache in caches.items()
    }
    if cpu.btb is not None:
        btb = prepared.replay(layouts, cpu.btb, kind="branches", by_function=False)
        found["btb"] = btb.total[:, _OWN]
    return found


def noise_of(links: Sequence[TimedLink]) -> float:
    """By how many cycles a link's time differs when all of it is taken again: derived from its
    halves, each of which has half of the processes (a robust standard deviation of the difference).
    """
    apart = [abs(one - other) for one, other in (link.halves for link in links)]
    return _MAD * float(np.median(apart)) / math.sqrt(2)


def rows_of(timed: TimedProgram, trace: Trace, links: Sequence[Path], cpu: CPU) -> ProgramRows:
    """A program that was timed and traced, as the fit wants it. `links` are as in `timed`.

    LabError when the guest executed another number of iterations than was timed.
    """
    for link in timed.links:
        if link.iterations != trace.iterations:
            raise LabError(
                f"{timed.name}: {link.iterations} passes were timed, and {trace.iterations} traced",
                "this is no run of the same program: make the calibration again",
            )
    counts = counted_links(trace, links, cpu)
    constant = {name: float(of.mean()) for name, of in counts.events.items()}
    return ProgramRows(
        name=timed.name,
        flow=timed.flow,
        cycles=np.array([link.cycles for link in timed.links]),
        noise=noise_of(timed.links),
        events=counts.events,
        insns=counts.insns,
        data=constant | counts.data,
        code=timed.code,
    )
