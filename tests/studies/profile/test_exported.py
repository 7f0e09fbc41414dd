# SPDX-License-Identifier: GPL-2.0-or-later
"""A real run whose calls were followed, in the programs that read exports."""

import asyncio
import re
from pathlib import Path

import pytest

from kdelta.counts.model import CONTEXTS, merged_regions
from kdelta.infer.profiles.profile import Part, Selection
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.report.exports import EXPORTS, Naming
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.profile.exported import (
    ExportedRun,
    exportable,
    kernel_recording,
    selected,
)
from kdelta.studies.profile.study import ProfileRequest
from tests.machines.bench import OLD
from tests.report.exports.example import READ, example, output, tool

REGIONS = ("getppid", "fork-exit-wait", "pipe-round-trip")


def test_what_is_looked_at_alone_has_costs_and_paths_stay_whole() -> None:
    profile = example()[0]
    kernel = selected(profile, Selection(CONTEXTS, (Part.KERNEL,)))
    interrupts = selected(profile, Selection(("interrupts",)))
    whole = sum(READ.values())
    assert kernel.row_costs().total().insns == whole - 5 - 1000
    assert interrupts.row_costs().total().insns == 110
    assert len(kernel.tree) == len(interrupts.tree) == len(profile.tree)
    lines = EXPORTS["folded"].made([kernel], Naming()).decode().splitlines()
    assert "read;own;work;main work;do_syscall_64;vfs_read;walk;walk;hook [nf nat];walk 30" in lines


@pytest.mark.outside
@pytest.mark.guest
def test_a_real_run_adds_up_in_each_reader(tmp_path: Path) -> None:
    request = ProfileRequest(lab=LabRequest(perturbations=1, machine=MachineOptions()))

    async def made(store: Store) -> ExportedRun:
        found = await kernel_recording(
            OLD, Work("syscalls", REGIONS), request, Lab(store, Silent())
        )
        assert isinstance(found, ExportedRun)
        return found

    with Store.open(tmp_path / "store") as store:
        recording = asyncio.run(made(store))
        exported = asyncio.run(exportable(recording, Selection(CONTEXTS), Silent()))
    profiles, naming = exported
    counted = {
        name: sum(region.cost(context).insns for context in CONTEXTS)
        for name, region in merged_regions(recording.one.counts).items()
    }
    assert tuple(counted) == REGIONS
    files = {}
    for name, export in EXPORTS.items():
        files[name] = tmp_path / f"real{export.suffix}"
        files[name].write_bytes(export.made(profiles, naming))
    whole = sum(counted.values())

    inclusive = output(
        "callgrind_annotate", "--inclusive=yes", "--threshold=100", files["callgrind"]
    )
    for name, insns in counted.items():
        assert re.search(
            rf"^ *{insns:,} .*\?\?\?:region {name} \[\[kdelta\]\]$", inclusive, re.MULTILINE
        )
    assert re.search(rf"^{whole:,} \(100.0%\) .* PROGRAM TOTALS$", inclusive, re.MULTILINE)

    tags = output(tool("pprof/pprof"), "-tags", files["pprof"], HOME=str(tmp_path))
    for name, insns in counted.items():
        assert re.search(rf"^ *{insns} \( *[\d.]+%\): {name}$", tags, re.MULTILINE)

    stacks = output(tool("inferno/bin/inferno-collapse-perf"), files["perf-script"])
    assert sum(int(line.rpartition(" ")[2]) for line in stacks.splitlines()) == whole
    picture = output(tool("inferno/bin/inferno-flamegraph"), "--minwidth=0", files["folded"])
    assert f"<title>all ({whole:,} samples, 100%)</title>" in picture
    for name, insns in counted.items():
        assert re.search(rf"<title>{name} \({insns:,} samples, ", picture)
