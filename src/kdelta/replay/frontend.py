# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace replayed through a CPU's front end under many layouts: what it mispredicts, misses and
does not hide.
"""

import msgspec

from kdelta.counts.trace import U64, Trace
from kdelta.cpus.model import CPU
from kdelta.replay.simulate import Placed
from kdelta.spec.errors import LabError

EVENTS = (
    "conditional",
    "indirect",
    "return",
    "btb-first",
    "btb",
    "l1i",
    "l1i-exposed",
    "itlb",
    "fetch-windows",
    "op-cache",
)
"""Mispredicted conditional branches, indirect jumps and calls, and returns; taken branches that the
first of two BTBs did not have and the second had; those that the last one did not have; lines that
the L1I did not have, as in the plain replay; cycles of their latency that were left when they were
needed, each miss in whole cycles; pages that the TLB did not have; aligned windows that were
fetched; windows of code that the cache of decoded operations did not have."""

MECHANISMS = (*(event for event in EVENTS if event != "l1i"), "run-ahead", "next-line")
"""What can be switched off: what is then 0, or, of the last two, what no longer hides misses."""


class Events(msgspec.Struct, frozen=True):
    """What a replay found, by EVENTS.

    total: (n_layouts, n_events, 3), by context as in counts.model.CONTEXTS.
    by_function: (n_layouts, n_events, n_functions), of all contexts; None if it was not asked for.
    What branches do belongs to the function that they are in, what lines, pages and windows do to
    the one that was executed.
    """

    total: U64
    by_function: U64 | None


class PreparedFrontEnd:
    """A trace with what holds of it for all layouts: made once, replayed as often as wanted.

    Raises LabError for a trace that does not say how its blocks end, and as PreparedTrace does.
    """

    def __init__(self, trace: Trace, placed: Placed) -> None:
        if trace.jumps is None:
            raise LabError(
                f"the trace of region {trace.region} does not say how its blocks end",
                "it was made by an older kdelta; make the run again with --again",
            )

    def replay(
        self,
        layouts: U64,
        cpu: CPU,
        *,
        by_function: bool = False,
        threads: int | None = None,
        without: frozenset[str] = frozenset(),
    ) -> Events:
        """What happens under each of `layouts` (n_layouts, n_functions), U64."""
        raise NotImplementedError
