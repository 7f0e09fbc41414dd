# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles of two real kernels on a named CPU."""

import asyncio
from pathlib import Path

import pytest

from kdelta.cpus import load_cpu
from kdelta.infer.effects.effects import Word
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.measures.cycles.effects import Cycles
from kdelta.measures.cycles.measure import cycles_of
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from tests.machines.bench import NEW, OLD

pytestmark = [pytest.mark.guest, pytest.mark.slow]

LAYOUTS = 16


def _compare(folder: Path, *others: str, cpu: str = "zen3") -> tuple[Comparison, ...]:
    request = CompareRequest(
        base=OLD,
        others=others,
        operations=("open-close",),
        cpus=(load_cpu(cpu),),
        layouts=LAYOUTS,
        lab=LabRequest(perturbations=2),
    )
    with Store.open(folder / "store") as store:
        return asyncio.run(run_compare(request, Lab(store, Silent())))


def judged(found: Comparison) -> Cycles:
    cycles = cycles_of(found.judged)
    assert cycles
    return cycles


@pytest.mark.campaign
def test_two_kernels_and_one_against_itself(tmp_path: Path) -> None:
    new, itself = _compare(tmp_path, NEW, OLD)
    for comparison in (new, itself):
        assert comparison.cpu
        (effect,) = judged(comparison).effects
        assert effect.layouts == (LAYOUTS, LAYOUTS)
        assert effect.paired
        assert set(effect.misses) == {"l1i", "itlb"}
        base = effect.misses["l1i"].base
        # More code than the cache has room for in some layout, and all layouts are not the same.
        assert 0 < base.least < base.mean < base.most
        assert base.percentile is not None
        assert effect.hidden.base.mean < effect.exposed.base.mean
        runs = [done.run for side in (comparison.base, comparison.other) for done in side.done]
        assert len(runs) == 4
        assert {run.machine["cpu"] for run in runs} == {comparison.cpu.qemu.cpu}

    assert [one.relinked for one in judged(new).effects] == [False]
    (same,) = judged(itself).effects
    assert same.relinked
    assert (same.verdict.word, same.verdict.within) == (Word.SAME, 0)
    for figure in (*same.misses.values(), same.hidden, same.exposed):
        assert figure.base == figure.other

    (again,) = _compare(tmp_path, NEW)
    assert all(done.stored for done in (*again.base.done, *again.other.done))
    assert judged(again).effects == judged(new).effects
    assert judged(again).notes == judged(new).notes


def test_a_cpu_of_another_architecture(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="arm"):
        _compare(tmp_path, NEW, cpu="cortex-a9")
