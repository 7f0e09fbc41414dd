# SPDX-License-Identifier: GPL-2.0-or-later
"""What guests are like where the user names no CPU, and kernels in which nothing can be forced."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from kdelta.cpus import load_cpu
from kdelta.host.target import targets
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import default_cpu, lab_like, machine_for
from kdelta.lab.explain import NotForcedError
from kdelta.lab.lab import Lab
from kdelta.lab.reports import default_title
from kdelta.lab.request import LabRequest
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.tcg import Guest, Snapshot
from kdelta.report.lines import machine_facts
from kdelta.spec.errors import KdeltaError, LabError, UserError
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.store import Store
from tests.lab.test_memory import X86, Image, Saying

OTHER = msgspec.structs.replace(X86, identity="1" * 64, spec="image:/other", release="5.4")
QEMU64 = MachineOptions(cpu="qemu64,-rdrand")
ZEN4 = load_cpu("zen4")


class Boots:
    """What comes of a guest's boot, by the kernel's release; counts the boots."""

    def __init__(self, outcomes: dict[str, KdeltaError | GuestOutcome]) -> None:
        self.outcomes = outcomes
        self.made: list[str] = []

    async def start(
        self, kernel: Kernel, guest: Guest, *, snapshots: bool | None = None
    ) -> tuple[Guest, Snapshot | GuestOutcome]:
        """As Lab.start."""
        assert snapshots
        self.made.append(kernel.release)
        found = self.outcomes.get(kernel.release)
        if isinstance(found, KdeltaError):
            raise found
        return guest, found or Snapshot(Path("/snapshot"))


@pytest.fixture(autouse=True)
def _no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.lab.lab.base_image", lambda *_: Image())
    monkeypatch.setattr("kdelta.host.emulator.build_part", lambda *_, **__: Path("/plugin"))
    monkeypatch.setattr("kdelta.host.emulator._plugin_apis", lambda _: (1, 1))


@pytest.fixture
def boots(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Boots:
    assert own_cache
    made = Boots({"5.4": NotForcedError("cannot force features in 5.4: it did not take fsrm")})
    monkeypatch.setattr(Lab, "start", lambda _, *given, **how: made.start(*given, **how))
    return made


def settled(
    folder: Path, kernels: Sequence[Kernel], request: LabRequest | None = None
) -> tuple[LabRequest, list[str]]:
    saying = Saying()
    with Store.open(folder) as store:
        lab = Lab(store, saying, request or LabRequest())
        return asyncio.run(lab.settled(kernels)).request, saying.said


def test_the_default_is_a_cpu_file_of_the_architecture() -> None:
    named = {arch: default_cpu(arch) for arch in targets()}
    assert named == {"x86_64": ZEN4, "arm": None, "arm64": None, "riscv64": None}
    assert all(cpu is None or (cpu.arch, bool(cpu.qemu.cpu)) == (arch, True)
               for arch, cpu in named.items())  # fmt: skip


def test_a_machine_without_a_cpu_is_like_the_default_one() -> None:
    machine = machine_for(MachineOptions(append="quiet"), "x86_64")
    assert machine.cpu == ZEN4.qemu.cpu
    assert machine.force == ZEN4.qemu.force != ()
    assert machine.append == f"{ZEN4.qemu.append} quiet".strip()
    for arch in ("arm", "arm64", "riscv64"):
        assert machine_for(MachineOptions(), arch) == MachineOptions()


def test_a_named_cpu_is_left_as_it_is() -> None:
    assert machine_for(QEMU64, "x86_64") == QEMU64
    skylake = lab_like(LabRequest(), load_cpu("skylake-server")).machine
    assert machine_for(skylake, "x86_64") == skylake
    generic = lab_like(LabRequest(), load_cpu("generic-x86-64")).machine
    assert machine_for(generic, "x86_64").cpu == ZEN4.qemu.cpu
    both = lab_like(LabRequest(machine=QEMU64), load_cpu("generic-x86-64")).machine
    assert both.cpu == QEMU64.cpu


def test_guests_of_the_lab_are_like_the_default_cpu(own_data: Path) -> None:
    with Store.open(own_data) as store:
        named, unnamed, raw = (
            Lab(store, Saying(), request).guest(X86)
            for request in (
                lab_like(LabRequest(), ZEN4), LabRequest(), LabRequest(machine=QEMU64)
            )
        )  # fmt: skip
        assert unnamed == named
        assert unnamed.force == ZEN4.qemu.force
        assert (raw.cpu, raw.force) == (QEMU64.cpu, ())


def test_kernels_that_take_what_is_forced_leave_the_request(own_data: Path, boots: Boots) -> None:
    assert settled(own_data, [X86]) == (LabRequest(), [])
    assert boots.made == ["6.12"]
    assert settled(own_data, [X86]) == (LabRequest(), [])
    assert boots.made == ["6.12"]  # what came of it is kept


def test_one_kernel_that_takes_nothing_leaves_all_without(own_data: Path, boots: Boots) -> None:
    for _ in range(2):
        found, said = settled(own_data, [X86, OTHER])
        assert found.machine == msgspec.structs.replace(
            machine_for(MachineOptions(), "x86_64"), force=()
        )
        (line,) = said
        assert line.startswith("no features of the default CPU are forced: cannot force")
        assert line.endswith("features in 5.4: it did not take fsrm")
    assert sorted(boots.made) == ["5.4", "6.12"]


def test_features_taken_away_by_a_parameter_are_not_forced(own_data: Path, boots: Boots) -> None:
    clears = msgspec.structs.replace(X86, parameters=("clearcpuid=fsrm",))
    found, said = settled(own_data, [clears])
    assert found.machine.force == ()
    assert "clearcpuid= of 6.12 does nothing to features that are forced" in said[0]
    assert boots.made == []
    with Store.open(own_data) as store:
        assert Lab(store, Saying(), found).guest(clears).cpu == ZEN4.qemu.cpu
        with pytest.raises(UserError, match="clearcpuid= does nothing"):
            Lab(store, Saying(), lab_like(LabRequest(), ZEN4)).guest(clears)


@pytest.mark.parametrize(
    "outcome",
    [
        GuestOutcome(RunStatus.BOOT_FAILED, "panic", "", 1.0, {}),
        UserError("cannot boot as asked: it does not know nosuch=1", ""),
    ],
)
@pytest.mark.slow
def test_a_kernel_that_does_not_boot_decides_nothing(
    own_data: Path, boots: Boots, outcome: KdeltaError | GuestOutcome
) -> None:
    boots.outcomes["6.12"] = outcome
    for _ in range(2):
        assert settled(own_data, [X86]) == (LabRequest(), [])
    assert boots.made == ["6.12", "6.12"]


def test_other_errors_are_raised(own_data: Path, boots: Boots) -> None:
    boots.outcomes["6.12"] = LabError("the disk is full", "")
    with pytest.raises(ExceptionGroup) as caught:
        settled(own_data, [X86])
    assert caught.group_contains(LabError, match="the disk is full")


def test_a_named_cpu_and_other_architectures_need_no_boot(own_data: Path, boots: Boots) -> None:
    for request in (LabRequest(machine=QEMU64), lab_like(LabRequest(), ZEN4)):
        assert settled(own_data, [OTHER], request) == (request, [])
    assert boots.made == []


def test_facts_name_the_cpu_and_what_is_not_forced() -> None:
    machine: dict[str, str | int | float] = {
        "name": "tcg", "cpu": ZEN4.qemu.cpu, "cpu_like": ZEN4.title
    }  # fmt: skip
    assert default_title(ZEN4.qemu.cpu) == ZEN4.title
    assert default_title(QEMU64.cpu) == default_title("") == ""
    (_, (_, bare)) = machine_facts(machine)
    assert bare.startswith("like AMD Zen 4: EPYC 9004: EPYC-Milan, family=25")
    assert bare.endswith("; its features are not forced in the kernel")
    (_, (_, whole)) = machine_facts({**machine, "force": "fsrm"})
    assert whole.endswith("; forced in the kernel: fsrm")
    (_, (_, raw)) = machine_facts({"name": "tcg", "cpu": QEMU64.cpu})
    assert raw == "qemu64, -rdrand"


def test_the_cpu_of_another_architecture_is_refused_before_the_kernel_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU would report it after a boot that cannot begin."""
    monkeypatch.setattr("kdelta.lab.lab.find_qemu", lambda *_: pytest.fail("it was looked for"))
    monkeypatch.setattr("kdelta.lab.lab.arch_of", lambda _: "x86_64")
    monkeypatch.setattr("kdelta.lab.lab.obtained", lambda *_: pytest.fail("it was fetched"))
    request = LabRequest(machine=MachineOptions(cpu=load_cpu("cortex-a9").qemu.cpu))
    with (
        Store.open(tmp_path) as store,
        pytest.raises(UserError, match="cortex-a9 is a CPU of arm, "),
    ):
        Lab(store, Saying(), request).kernel("deb:linux-image-amd64")
