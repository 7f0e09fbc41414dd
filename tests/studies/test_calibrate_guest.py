# SPDX-License-Identifier: GPL-2.0-or-later
"""Two links of one program, traced in a guest: each predicts the other."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from kdelta.cpus.catalog import load_cpu
from kdelta.replay.programs import placed_program, program_layouts, program_text
from kdelta.replay.simulate import PreparedTrace
from kdelta.spec.errors import UserError
from kdelta.studies.calibrate.traced import DEFAULT_KERNEL, TracedWork, traced_programs
from kdelta.studies.lab import open_store
from kdelta.studies.requests import LabRequest, Silent
from kdelta.workloads.calibration.generate import Code, Use, bodies_of, program, source_of
from kdelta.workloads.calibration.link import all_linked, compiled

pytestmark = [pytest.mark.guest, pytest.mark.network]

CODE = Code("small", 60, 12)
CPU = load_cpu("icelake-server")
LAB = LabRequest(perturbations=1)


def test_a_trace_of_one_link_is_a_trace_of_another(tmp_path: Path) -> None:
    made = program(CODE, Use("random"), (bodies_of(CODE), source_of(CODE)), 3)
    objects = compiled(made, tmp_path / "objects", arch="x86_64")
    links = all_linked(objects, 3, tmp_path / "links")
    works = [TracedWork(str(n), links[n], ("trace", *made.arguments), "pass") for n in (0, 2)]
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
    assert traces["0"].iterations == traces["2"].iterations
