# SPDX-License-Identifier: GPL-2.0-or-later
"""Two links of one program, traced in a guest: each predicts the other."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import MISPREDICTIONS
from kdelta.replay.programs import placed_program, program_layouts, program_text
from kdelta.replay.simulate import PreparedTrace
from kdelta.spec.errors import UserError
from kdelta.spec.timings import Flow
from kdelta.studies.calibrate.traced import (
    DEFAULT_KERNEL,
    TracedWork,
    counted_links,
    traced_programs,
)
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.progress import Silent
from kdelta.studies.lab.request import LabRequest
from kdelta.workloads.calibration.bundle import all_linked, compiled
from kdelta.workloads.calibration.generate import (
    PASSES,
    GeneratedCode,
    ProgramSource,
    Use,
    bodies_of,
    program,
    source_of,
)

pytestmark = [pytest.mark.guest, pytest.mark.slow]

CODE = GeneratedCode("small", 60, 12)
WIDE = GeneratedCode("wide", 60, 40, call="chain", wide=True)
CPU = load_cpu("icelake-server")
LAB = LabRequest(perturbations=1)


def made(code: GeneratedCode, flow: Flow, folder: Path) -> tuple[ProgramSource, tuple[Path, ...]]:
    source = program(code, Use(flow), (bodies_of(code), source_of(code)), 3)
    objects = compiled(source, folder / "objects", arch="x86_64")
    return source, all_linked(objects, 3, folder / "links")


def test_a_trace_of_one_link_is_a_trace_of_another(tmp_path: Path) -> None:
    source, links = made(CODE, "random", tmp_path / "small")
    wide, wide_links = made(WIDE, "fixed", tmp_path / "wide")
    works = [TracedWork(str(n), links[n], ("trace", *source.arguments), "pass") for n in (0, 2)]
    works.append(TracedWork("wide", wide_links[0], ("trace", *wide.arguments), "pass"))
    with open_store() as store:
        traces = asyncio.run(
            traced_programs(
                works, kernel=DEFAULT_KERNEL, cpu=CPU, lab=LAB, store=store, progress=Silent()
            )
        )
        with pytest.raises(UserError, match="not linked statically"):
            asyncio.run(
                traced_programs(
                    [TracedWork("ls", Path("/bin/ls"))],
                    kernel=DEFAULT_KERNEL,
                    cpu=CPU,
                    lab=LAB,
                    store=store,
                    progress=Silent(),
                )
            )
    texts = [program_text(path.name, path.read_bytes()) for path in links]
    # The L1I is small, so that there is something to miss.
    cache = CPU.l1i.__class__(16, 4, 64)
    found = []
    for n in (0, 2):
        trace = traces[str(n)]
        placement = placed_program(trace, texts[n])
        layouts = program_layouts(placement, texts[n], texts)
        misses = PreparedTrace(trace, placement.placed).replay(layouts, cache, by_function=False)
        found.append(misses.total[:, 0])
    assert (found[0] == found[1]).all()
    assert np.ptp(found[0]) > 0
    assert traces["0"].executed_insns(0) == traces["2"].executed_insns(0)
    assert traces["0"].iterations == traces["2"].iterations == PASSES
    # Wide code is predicted, and waits for the windows that it lies in, which links change.
    events = counted_links(traces["wide"], wide_links, CPU).events
    assert np.ptp(events["fetch-windows"]) > 0
    for name in MISPREDICTIONS:
        assert events[name].max() < 10
