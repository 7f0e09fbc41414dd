# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job on two real kernels, and what it does when it cannot have one."""

import asyncio
from pathlib import Path

import pytest

from kdelta.infer.effects.effects import Word
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.lab.requests import CompareRequest, LabRequest, Silent
from tests.machines.bench import NEW, OLD

pytestmark = pytest.mark.guest

OPERATIONS = ("getppid", "chdir")


def _compare(
    folder: Path, *others: str, again: bool = False, operations: tuple[str, ...] = OPERATIONS
) -> tuple[Comparison, ...]:
    lab = LabRequest(perturbations=2, again=again)
    request = CompareRequest(base=OLD, others=others, operations=operations, lab=lab)
    with Store.open(folder / "store") as store:
        return asyncio.run(run_compare(request, store, Silent()))


def test_two_kernels_are_compared_and_the_store_answers_the_second_time(tmp_path: Path) -> None:
    (first,) = _compare(tmp_path, NEW)
    assert first.effects
    names = [effect.name for effect in first.effects.operations]
    assert names == list(OPERATIONS)
    for effect in first.effects.operations:
        assert effect.costs
        moved = sum(f.cost.effect.value for f in effect.functions)
        assert moved == effect.costs.insns.effect.value != 0
    assert not any(done.stored for done in (*first.base.done, *first.other.done))

    (second,) = _compare(tmp_path, NEW)
    assert all(done.stored for done in (*second.base.done, *second.other.done))
    assert second.effects == first.effects

    (third,) = _compare(tmp_path, NEW, again=True)
    assert not any(done.stored for done in (*third.base.done, *third.other.done))
    assert third.effects == first.effects


def test_a_kernel_against_itself_is_exactly_the_same(tmp_path: Path) -> None:
    (found,) = _compare(tmp_path, OLD)
    assert found.effects
    for effect in found.effects.operations:
        assert effect.verdict.word is Word.SAME
        assert effect.costs
        assert effect.costs.insns.effect.value == 0


def test_a_kernel_that_cannot_be_had_does_not_stop_the_others(tmp_path: Path) -> None:
    missing, good = _compare(tmp_path, "deb:linux-image-nonsense", NEW, operations=("getppid",))
    assert missing.effects is None
    assert "linux-image-nonsense" in missing.other.failure
    assert good.effects
    with pytest.raises(UserError, match="linux-image-nonsense"):
        _compare(tmp_path, "deb:linux-image-nonsense", operations=("getppid",))


def test_an_operation_that_does_not_exist_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="getpid") as raised:
        _compare(tmp_path, NEW, operations=("getpid",))
    assert "getppid" in raised.value.hint
