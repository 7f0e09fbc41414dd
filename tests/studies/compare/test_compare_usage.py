# SPDX-License-Identifier: GPL-2.0-or-later
"""What a comparison refuses before anything is obtained."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from kdelta.cpus import CPU, load_cpu
from kdelta.cpus.model import Cache
from kdelta.kernels.kbuild.built import built_kernels
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare
from tests.conftest import FakeProgram
from tests.host.fake_pin import HOST_SCRIPT
from tests.kernels.trees import fake_tree

SHORT = msgspec.structs.replace(load_cpu("zen3"), l1d=Cache(64, 4, 32))
MIXED = msgspec.structs.replace(load_cpu("zen3"), l2=Cache(1024, 8, 128))


@pytest.mark.parametrize(
    ("cpus", "words"),
    [
        ((), "accesses to data are recorded for the L2 of a CPU, and none is named"),
        ((SHORT,), "lines of 32 bytes"),
        ((load_cpu("zen3"), MIXED), "lines of 64 and 128 bytes"),
    ],
)
def test_data_that_nothing_can_be_made_of(
    cpus: tuple[CPU, ...], words: str, tmp_path: Path, own_cache: Path
) -> None:
    request = CompareRequest(
        base="deb:a", others=("deb:b",), cpus=cpus, lab=LabRequest(data_lines=True)
    )
    with Store.open(tmp_path) as store, pytest.raises(UserError, match=words):
        asyncio.run(run_compare(request, Lab(store, Silent())))
    assert not (own_cache / "kernels").exists()


def test_kernels_of_two_architectures(tmp_path: Path, fake_program: FakeProgram) -> None:
    """What they execute are not the same instructions, so no difference means anything."""
    text = b"Linux version 6.12.5-test (someone@example.org) (gcc 12) #1 SMP\n\0"
    for name, at, magic in (("arm64", 0x38, b"ARM\x64"), ("riscv64", 0x30, b"RISCV\0\0\0")):
        (tmp_path / name).write_bytes(bytes(at) + magic + bytes(64) + text)
    for emulates in ("aarch64", "riscv64"):
        words = HOST_SCRIPT.replace("x86_64", emulates)
        fake_program(f"qemu-system-{emulates}", words)
    lab = LabRequest(machine=MachineOptions(qemu="host"))
    request = CompareRequest(
        base=f"image:{tmp_path}/arm64", others=(f"image:{tmp_path}/riscv64",), lab=lab
    )
    with Store.open(tmp_path) as store, pytest.raises(UserError) as raised:
        asyncio.run(run_compare(request, Lab(store, Silent())))
    assert "arm64 is a kernel for arm64, and" in raised.value.message
    assert "riscv64 one for riscv64: their instructions cannot be compared" in raised.value.message


def test_kernel_with_a_boot_parameter_boots_before_others_are_obtained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[str] = []

    def kernel(_: Lab, spec: str) -> Kernel:
        seen.append(f"obtain {spec}")
        parameters = tuple(spec.partition(" +cmdline:")[2].split())
        return Kernel("0" * 64, spec, "/vmlinuz", "x86_64", "6.12", parameters=parameters)

    async def start(_: Lab, kernel: Kernel, __: object, *, snapshots: bool) -> None:
        assert snapshots
        seen.append(f"boot {kernel.title}")
        raise UserError(f"cannot boot {kernel.spec} as asked: 6.12 does not know bogus", "")

    monkeypatch.setattr("kdelta.studies.compare.study.check_kernels", lambda *_: None)
    monkeypatch.setattr("kdelta.lab.lab.must_fit_in_command_line", lambda *_: None)
    monkeypatch.setattr("kdelta.lab.lab.clears", lambda _: False)
    monkeypatch.setattr("kdelta.lab.lab.known_refusal", lambda _: None)
    monkeypatch.setattr(Work, "plan", lambda *_, **__: None)
    monkeypatch.setattr(Lab, "_guest", lambda *_: SimpleNamespace(command_line="", emulator=QEMU))
    monkeypatch.setattr(Lab, "kernel", kernel)
    monkeypatch.setattr(Lab, "start", start)
    request = CompareRequest(base="deb:aa", others=("deb:bb", "deb:aa +cmdline:bogus"))
    with Store.open(tmp_path) as store, pytest.raises(ExceptionGroup) as raised:
        asyncio.run(run_compare(request, Lab(store, Silent())))
    assert raised.group_contains(UserError, match="does not know bogus")
    assert seen == ["obtain deb:aa +cmdline:bogus", "boot 6.12 bogus"]


@pytest.mark.usefixtures("own_cache")
def test_nothing_is_built_where_the_other_config_is_refused(tmp_path: Path) -> None:
    tree = fake_tree(tmp_path)
    request = CompareRequest(base=str(tree), others=(f"{tree} +CONFIG_DEBUG_LIST=y",))
    with Store.open(tmp_path) as store:
        (found,) = asyncio.run(run_compare(request, Lab(store, Silent())))
    assert found.base.failure == "not built: there is no kernel to compare it with"
    assert found.other.failure.startswith("config-refused: CONFIG_DEBUG_LIST=y was not granted")
    assert built_kernels() == []


QEMU = SimpleNamespace(plugin=lambda _: None)
