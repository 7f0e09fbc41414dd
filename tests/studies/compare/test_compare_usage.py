# SPDX-License-Identifier: GPL-2.0-or-later
"""What a comparison refuses before anything is obtained."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.cpus import CPU, load_cpu
from kdelta.cpus.model import Cache
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.compare.study import run_compare
from kdelta.studies.lab.requests import CompareRequest, LabRequest, Silent

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
        asyncio.run(run_compare(request, store, Silent()))
    assert not (own_cache / "kernels").exists()


def test_kernels_of_two_architectures(tmp_path: Path) -> None:
    """What they execute are not the same instructions, so no difference means anything."""
    text = b"Linux version 6.12.5-test (someone@example.org) (gcc 12) #1 SMP\n\0"
    for name, at, magic in (("arm64", 0x38, b"ARM\x64"), ("riscv64", 0x30, b"RISCV\0\0\0")):
        (tmp_path / name).write_bytes(bytes(at) + magic + bytes(64) + text)
    lab = LabRequest(machine=MachineOptions(qemu="host"))
    request = CompareRequest(
        base=f"image:{tmp_path}/arm64", others=(f"image:{tmp_path}/riscv64",), lab=lab
    )
    with Store.open(tmp_path) as store, pytest.raises(UserError) as raised:
        asyncio.run(run_compare(request, store, Silent()))
    assert "arm64 is a kernel for arm64, and" in raised.value.message
    assert "riscv64 one for riscv64: their instructions cannot be compared" in raised.value.message
