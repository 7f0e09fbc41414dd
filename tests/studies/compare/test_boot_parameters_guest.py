# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot parameters on a real kernel: what they change, and kernels that do not take them."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from kdelta.cpus.catalog import load_cpu
from kdelta.infer.effects.effects import Word
from kdelta.lab.cpus import machine_like
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.log.request import HistoryRequest
from kdelta.studies.log.study import run_history
from tests.machines.bench import NEW, kernel
from tests.robust.lab import console, kdelta, stored

pytestmark = [pytest.mark.guest, pytest.mark.slow]
BARRIER = "wrmsr PRED_CMD (IBPB)"
CLOCK = "gettimeofday-syscall"
NO_IBRS = "spectre_v2=retpoline retbleed=off"


def compared(
    folder: Path, other: str, operations: tuple[str, ...] = ("getppid",), **how: object
) -> Comparison:
    lab = msgspec.structs.replace(LabRequest(perturbations=2), **how)
    request = CompareRequest(
        base=NEW, others=(other,), operations=operations, states=False, lab=lab
    )
    with Store.open(folder / "store") as store:
        (found,) = asyncio.run(run_compare(request, Lab(store, Silent())))
    return found


def test_without_mitigations_a_call_neither_switches_page_tables_nor_clears_buffers(
    tmp_path: Path,
) -> None:
    machine = machine_like(MachineOptions(), load_cpu("skylake-server"))
    found = compared(tmp_path, f"{NEW} +cmdline:mitigations=off", machine=machine)
    assert found.base.kernel
    assert found.other.kernel
    assert found.other.kernel.spec == f"{found.base.kernel.spec} +cmdline:mitigations=off"
    assert found.other.kernel.image == found.base.kernel.image
    assert found.other.kernel.identity != found.base.kernel.identity
    assert found.effects
    (effect,) = found.effects.operations
    assert effect.verdict.word is Word.FASTER
    assert effect.costs
    specials = effect.costs.specials
    for kind, before in (("write-cr3 flush", 2), ("verw", 1)):
        assert specials[kind].base.value == before
        assert specials[kind].other.value == 0
    assert {done.run.machine["append"] for done in found.other.done} == {machine.append}

    with Store.open(tmp_path / "store") as store:
        (series,) = run_history(HistoryRequest(workload="syscalls"), Lab(store, Silent())).series
    version = found.base.kernel.release.partition("+")[0]
    names = [f"{version} without", f"{version} with mitigations=off"]
    assert [one.name for one in series.kernels] == names


@pytest.mark.parametrize(
    ("cpu", "change", "kind", "times", "word"),
    [
        ("zen4", "spec_rstack_overflow=ibpb", BARRIER, (0, 1), Word.SLOWER),
        ("skylake-server", NO_IBRS, "wrmsr SPEC_CTRL", (2, 0), Word.FASTER),
        ("zen4", "clocksource=acpi_pm", "in 0x608", (0, 1), Word.SLOWER),
        ("zen4", "clocksource=hpet", "mmio hpet read", (0, 1), Word.SLOWER),
    ],
    ids=["ibpb", "ibrs", "acpi_pm", "hpet"],
)
def test_what_is_written_or_read_decides_by_its_register_port_or_device(
    tmp_path: Path, cpu: str, change: str, kind: str, times: tuple[int, int], *, word: Word
) -> None:
    machine = machine_like(MachineOptions(), load_cpu(cpu))
    operation = CLOCK if "clock" in change else "getppid"
    found = compared(tmp_path, f"{NEW} '+cmdline:{change}'", (operation,), machine=machine)
    assert found.effects
    (effect,) = found.effects.operations
    assert effect.costs
    counted = effect.costs.specials[kind]
    assert [counted.base.value, counted.other.value] == [*times]
    of_barriers = {name for name in effect.costs.specials if "PRED_CMD" in name}
    assert of_barriers == {kind} & {BARRIER}
    assert effect.verdict.word is word


@pytest.mark.parametrize("snapshots", [True, pytest.param(False, marks=pytest.mark.campaign)])
@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ("audit=0 nosuch=1 nosuch", "does not know nosuch=1 nosuch"),
        ("nohz_full=1", "refuses nohz_full=1: it logs 'Housekeeping: nohz_full= or"),
        ("init_on_alloc=perhaps", "cannot read the value of init_on_alloc=perhaps"),
    ],
)
def test_a_parameter_that_the_kernel_does_not_take_gives_no_verdict(
    tmp_path: Path, parameters: str, why: str, *, snapshots: bool
) -> None:
    for _ in range(2 if snapshots else 1):  # the snapshot of the second time is from the cache
        with pytest.raises(ExceptionGroup) as caught:
            compared(tmp_path, f"{NEW} '+cmdline:{parameters}'", snapshots=snapshots)
        assert caught.group_contains(UserError, match=why)
    with Store.open(tmp_path / "store") as store:
        changed = [run for run in store.runs() if "+cmdline" in run.kernel_spec]
    assert not any(run.counts_blob for run in changed)
    failed = [run.detail for run in changed if run.status is RunStatus.BOOT_FAILED]
    assert any(why in detail for detail in failed) is not snapshots


def test_what_the_kernel_does_not_report_is_in_the_report() -> None:
    change = "+cmdline:nosuch.nosuch=1 spectre_v2=off"
    ended = kdelta("compare", NEW, change, "-o", "getppid", "--perturb", "1")
    assert ended.code == 0
    text = " ".join(ended.out.split())
    for word in ("nosuch.nosuch=1", "spectre_v2=off"):
        assert f"{word} may be without effect on 6.12" in text


def test_what_a_kernel_logs_only_with_a_parameter_is_in_the_report() -> None:
    ended = kdelta("compare", NEW, "+cmdline:apparmor=0", "-o", "getppid", "--perturb", "1")
    assert ended.code == 0
    text = " ".join(ended.out.split())
    assert "apparmor=0: as they boot, the kernels log 'LSM: initializing" in text
    assert re.search(r"yama,selinux,\S+' with it and 'LSM: \S+ \S+yama,apparmor,\S+' without", text)


def test_a_parameter_that_stops_the_boot_shows_the_kernels_last_words() -> None:
    words = ("run", f"{NEW} +cmdline:mem=8M", "--timeout", "60", "--", "/bin/true")
    ended = kdelta(*words)
    assert ended.code == 1
    (run,) = stored()
    assert f"No counts of run true on {run.kernel_release} with mem=8M:" in ended.out
    assert run.status is RunStatus.BOOT_FAILED
    # Which allocation fails first depends on the CPU.
    last = re.search(r"Kernel panic - not syncing: (.+?)\s*$", console(run), re.MULTILINE)
    assert last
    assert f"boot-failed: panic: {last[1]}" in ended.out
    assert run.kernel_identity != kernel(NEW).identity


def test_a_kernel_without_the_memory_controller_is_named_before_the_first_figure() -> None:
    words = ("-o", "getppid", "--perturb", "1", "--skip-states")
    ended = kdelta("compare", NEW, "+cmdline:cgroup_disable=memory", *words)
    assert ended.code == 0
    text = " ".join(ended.out.split())
    groups = (
        "groups: base with memory and pids, other with pids alone: in other, memory is not charged"
    )
    assert text.index(groups) < text.index("1 operation")
    ended = kdelta("gate", NEW, "+cmdline:cgroup_disable=memory", *words)
    assert "note: control groups: base with memory and pids" in ended.err
    assert "groups" not in kdelta("compare", NEW, "+cmdline:audit=0", *words).out
