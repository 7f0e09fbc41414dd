# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job on two real kernels, and what it does when it cannot have one."""

import asyncio
from pathlib import Path

import pytest

from kdelta.infer.effects.effects import Word
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.measures.path.judges import STATES
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.log.request import HistoryRequest
from kdelta.studies.log.study import run_history
from tests.machines.bench import NEW, OLD

pytestmark = pytest.mark.guest

OPERATIONS = ("getppid", "chdir")


def _compare(
    folder: Path,
    *others: str,
    again: bool = False,
    states: bool = False,
    operations: tuple[str, ...] = OPERATIONS,
) -> tuple[Comparison, ...]:
    request = CompareRequest(
        base=OLD,
        others=others,
        operations=operations,
        lab=LabRequest(perturbations=2, rerun=again),
        states=states,
    )
    with Store.open(folder / "store") as store:
        return asyncio.run(run_compare(request, Lab(store, Silent())))


@pytest.mark.slow
@pytest.mark.parametrize("states", [False, True])
def test_two_kernels_are_compared_and_the_store_answers_the_second_time(
    tmp_path: Path, states: bool
) -> None:
    (first,) = _compare(tmp_path, NEW, states=states)
    assert first.effects
    names = [effect.name for effect in first.effects.operations]
    assert names == list(OPERATIONS)
    for effect in first.effects.operations:
        assert effect.costs
        moved = sum(f.cost.effect.value for f in effect.functions)
        assert moved == effect.costs.insns.effect.value != 0
    assert not any(done.stored for done in (*first.base.done, *first.other.done))

    with Store.open(tmp_path / "store") as store:
        request = HistoryRequest(workload="syscalls", operations=OPERATIONS, perturbations=2)
        every = run_history(request, Lab(store, Silent())).series
    # Runs from another state are of another machine, and so a series themselves.
    changed = {name for state in STATES for name in state.change}
    (series,) = (one for one in every if not changed & one.machine.keys())
    assert states or every == (series,)
    # `kdelta log` has the figures of the comparison.
    for track, effect in zip(series.tracks, first.effects.operations, strict=True):
        step = track.points[1].step
        assert effect.costs
        assert step
        insns = effect.costs.insns
        assert [one.figure for one in track.points] == [insns.base, insns.other]
        assert (step.word, step.effect) == (effect.verdict.word, insns.effect)

    (second,) = _compare(tmp_path, NEW, states=states)
    assert all(done.stored for done in (*second.base.done, *second.other.done))
    assert second.effects == first.effects

    (third,) = _compare(tmp_path, NEW, again=True, states=states)
    assert not any(done.stored for done in (*third.base.done, *third.other.done))
    assert third.effects == first.effects


@pytest.mark.slow
def test_a_kernel_against_itself_is_exactly_the_same(tmp_path: Path) -> None:
    (found,) = _compare(tmp_path, OLD)
    assert found.effects
    for effect in found.effects.operations:
        assert effect.verdict.word is Word.SAME
        assert effect.costs
        assert effect.costs.insns.effect.value == 0


@pytest.mark.slow
def test_a_kernel_that_cannot_be_had_is_named_before_another_boots(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="linux-image-nonsense"):
        _compare(tmp_path, NEW, "deb:linux-image-nonsense", operations=("getppid",))
    with Store.open(tmp_path / "store") as store:
        assert store.runs() == []


def test_an_operation_that_does_not_exist_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="getpid") as raised:
        _compare(tmp_path, NEW, operations=("getpid",))
    assert "getppid" in raised.value.hint
