# SPDX-License-Identifier: GPL-2.0-or-later
"""A change of exactly k instructions in one kernel function is reported as exactly k, there."""

import asyncio
from pathlib import Path

import pytest

from kdelta.infer.effects.effects import Word
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare
from tests.machines.bench import NEW, guest, kernel, new_setting
from tests.studies.known_change import FUNCTION, add_instructions, extract_vmlinux, function_address

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Debian's 6.12, unpacked: it boots by PVH."""
    path = tmp_path_factory.mktemp("vmlinux") / "vmlinux"
    extract_vmlinux(Path(kernel(NEW).image), path)
    return path


def _address() -> int:
    snapshot = asyncio.run(obtain_snapshot(guest(NEW), new_setting()))
    assert not isinstance(snapshot, GuestOutcome)
    return function_address(snapshot.symbols.read_text())


@pytest.mark.slow
def test_k_more_instructions_in_one_kernel_function(vmlinux: Path, tmp_path: Path) -> None:
    changed = vmlinux.with_name("changed")
    k = add_instructions(vmlinux, changed, _address(), nops=5)
    request = CompareRequest(
        base=f"image:{vmlinux}",
        others=(f"image:{changed}",),
        operations=("getppid", "uname", "open-close"),
        lab=LabRequest(perturbations=2),
    )
    with Store.open(tmp_path / "store") as store:
        (comparison,) = asyncio.run(run_compare(request, Lab(store, Silent())))

    assert comparison.effects
    effects = {effect.name: effect for effect in comparison.effects.operations}
    getppid = effects["getppid"]
    assert getppid.verdict.word is Word.SLOWER
    assert getppid.costs
    # A tick may fall into another operation now: a mean may move within its spread, no more.
    insns = getppid.costs.insns.effect
    assert insns.low <= k <= insns.high
    assert getppid.costs.median_insns.effect.exact
    assert getppid.costs.median_insns.effect.value == k
    exactly = {f.name: f.cost.effect.value for f in getppid.functions if f.cost.effect.exact}
    assert exactly[FUNCTION] == k
    for name in ("uname", "open-close"):
        costs = effects[name].costs
        assert costs
        assert costs.median_insns.effect.value == 0, name
        assert effects[name].verdict.word is Word.SAME
