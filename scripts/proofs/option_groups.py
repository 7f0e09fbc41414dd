#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Proves on a real kernel that the parts of an ablation and the whole agree, and how closely.

    scripts/proofs/option_groups.py docs/cases/option-groups

ablates the eight groups of options in which plain.config and hardened.config of that folder differ,
over kdelta's small config of the distribution's 6.12: each group alone from A, on a machine that
looks like a Skylake server. It keeps the answer there as ablation.json and ablation.txt, and fails
if a figure is wider than it may be, or if what is known to do nothing is ranked. Kernels and runs
are kept: what was interrupted goes on where it was.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

from campaign import Aloud, printed

import kdelta
from kdelta.cpus.catalog import load_cpu
from kdelta.host.dirs import cache_dir
from kdelta.host.files import write_atomic
from kdelta.infer.effects.estimate import MEAN, Adds, is_seen
from kdelta.kernels.kbuild.built import load_built
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.lab.cpus import machine_like
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest
from kdelta.store.store import Store
from kdelta.studies.ablate.model import AblationReport
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.study import run_ablate
from kdelta.studies.documents import document_text
from kdelta.studies.search.model import means_of

PACKAGE = "linux-source-6.12"
CPU = "skylake-server"
PLAIN, HARDENED = "plain", "hardened"

WIDEST = 0.2
"""How wide the interval of what is left over may be in the mean, in per cent of A."""

WITHOUT = {
    "SLAB_BUCKETS": frozenset({"select-1000"}),
    "SLAB_FREELIST_RANDOM": frozenset({"mmap-munmap", "mmap-touch-4k"}),
}
"""Options without an effect on the path, and the regions where they may have one: select-1000 calls
kmalloc for its sets, by a function that has a parameter more with buckets; both operations of mmap
map and unmap, whose nodes are of a slab in another order.
"""


def granted(name: str, folder: Path, lab: Lab) -> Path:
    """The whole config that the tree grants to the small one with a fragment of that folder."""
    found = lab.kernel(f"deb-src:{PACKAGE} +{folder / f'{name}.config'}")
    if isinstance(found, NoKernel):
        sys.exit(f"{name}.config: {found.text}")
    built = load_built(found.built or "")
    if built is None:
        sys.exit(f"{name}.config: its kernel is not in the cache: run this again")
    path = cache_dir("configs") / "option-groups" / f"{name}.config"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, (built.path / built.config).read_bytes())
    return path


async def ablated(folder: Path, perturbations: int, store: Store) -> AblationReport:
    """The ablation of the two configs, each group alone from A."""
    plain = LabRequest(perturbations=perturbations)
    machine = machine_like(plain.machine, load_cpu(CPU))
    request = LabRequest(perturbations=perturbations, machine=machine)
    lab = Lab(store, Aloud(), request)
    before, after = (granted(name, folder, lab) for name in (PLAIN, HARDENED))
    return await run_ablate(
        AblateRequest(
            tree=f"deb-src:{PACKAGE}",
            before=str(before),
            after=str(after),
            one_by_one=True,
            rule_out=False,
            switches=False,
            lab=request,
        ),
        Lab(store, Aloud()),
    )


def problems(found: AblationReport) -> Iterator[str]:
    """Yield what of the report is not as it has to be."""
    means = means_of(found)
    rest = means.remainder
    if found.failure or rest is None:
        yield found.failure or "there is no mean"
        return
    if means.adds is not Adds.ADDS_UP:
        yield f"parts and whole: {means.adds}: {float(rest.value):+.3f} % is left over"
    wide = float(rest.high - rest.low)
    if wide > WIDEST:
        yield f"what is left over is known to {wide:.3f} %, and {WIDEST} % are allowed"
    units = {unit.name: unit for unit in found.option_groups}
    for name, regions in WITHOUT.items():
        unit = units.get(name)
        mean = means.of(unit.effects) if unit else None
        if unit is None or mean is None:
            yield f"{name} was not measured"
            continue
        rates = {region.name for region in found.regions if region.rate}
        seen = {name for name, one in unit.effects.items() if name != MEAN and is_seen(one)}
        there = means.of({at: one for at, one in unit.effects.items() if at in regions})
        if there is None or not mean.low <= there.value <= mean.high:
            where = float(there.value) if there else 0
            yield f"{name} has {float(mean.value):+.3f} %, and {where:+.3f} % where it may have any"
        for region in sorted(seen - rates - regions):
            yield f"{name} does something in {region}: {float(unit.effects[region].value):+.2f}"


def main() -> None:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="with plain.config and hardened.config")
    parser.add_argument("--perturb", type=int, default=8, help="runs of each kernel")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    with open_store() as store:
        report = asyncio.run(ablated(folder, asked.perturb, store))
    text = document_text(report, kdelta.__version__).replace(f"{cache_dir('configs')}/", "")
    write_atomic(folder / "ablation.json", text.encode())
    shown = printed("ablate", report).replace(f"{cache_dir('configs')}/", "")
    write_atomic(folder / "ablation.txt", shown.encode())
    found = list(problems(report))
    print(shown)
    print(*found or ["parts and whole agree"], sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
