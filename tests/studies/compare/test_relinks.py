# SPDX-License-Identifier: GPL-2.0-or-later
"""Real relinks of the 6.12 that test_source_kernel.py builds: predicted, measured, and judged.

scripts/proofs/relinks.py does the same with more links; tests/recorded/test_relinks.py checks it.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from relinks import Proof

from kdelta.cpus.catalog import load_cpu
from kdelta.host.dirs import data_dir
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.measures.cycles.measure import cycles_of
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare

pytestmark = [pytest.mark.build, pytest.mark.guest, pytest.mark.slow, pytest.mark.campaign]

CONFIG = Path(__file__).parents[3] / "docs/cases/options/speed.config"
SPEC = f"deb-src:linux-source-6.12 +base:{CONFIG}"
OPERATIONS = ("open-close", "mmap-munmap", "tcp-round-trip")
SEEDS = (1, 2)


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(data_dir()) as found:
        yield found


def test_misses_of_a_relinked_kernel_are_predicted(store: Store) -> None:
    proof = Proof(SPEC, OPERATIONS, store, print, perturbations=1)
    base = proof.traced(proof.linked())
    found = [
        one
        for seed in SEEDS
        for one in proof.predictions(base, proof.traced(proof.linked(seed)), seed)
    ]
    assert [(one.seed, one.region) for one in found] == [
        (seed, name) for seed in SEEDS for name in OPERATIONS
    ]
    assert [one for one in found if not one.holds] == []
    for name in OPERATIONS[1:]:
        measured = [one.measured for one in found if one.region == name]
        assert len(set(measured)) == len(SEEDS), "the links differ"
        assert min(measured) > 10_000


def test_a_relinked_kernel_is_neither_faster_nor_slower(store: Store) -> None:
    base, other = (f"{SPEC} +shuffle:{seed}" for seed in SEEDS)
    request = CompareRequest(
        base=base,
        others=(other,),
        operations=OPERATIONS,
        cpus=(load_cpu("generic-x86-64"),),
        lab=LabRequest(perturbations=2),
    )
    (found,) = asyncio.run(run_compare(request, Lab(store, Silent())))
    cycles = cycles_of(found.judged)
    assert cycles is not None
    assert all(one.relinked for one in cycles.effects)
    words = {one.region: one.verdict.word for one in cycles.effects}
    assert set(words) == set(OPERATIONS)
    assert set(words.values()) <= {"same", "placement only"}
