# SPDX-License-Identifier: GPL-2.0-or-later
"""What workloads bring into a guest from the pin: the same bytes on every host."""

import re
import subprocess
from pathlib import Path

import pytest

from kdelta.guests.job import Job, job_archive
from kdelta.guests.kernel_mode import direct_library
from kdelta.host.dirs import cache_dir
from kdelta.host.emulator import PIN
from kdelta.host.gcc import Compiler
from kdelta.lab.plan import carried_files, guest_compiler
from kdelta.spec.run import MachineOptions
from kdelta.workloads.catalog import Workload, build_workload, find_workload

pytestmark = [pytest.mark.network, pytest.mark.usefixtures("own_cache")]
PINNED = MachineOptions(qemu=PIN)


def pinned(arch: str, workload: Workload | None = None) -> Compiler:
    by = guest_compiler(arch, PINNED, print, workload)
    assert by.pin
    return by


def brought(workload: Workload, arch: str) -> bytes:
    """The archive of all that the workload brings into a guest."""
    by = pinned(arch, workload)
    program = build_workload(workload, by=by)
    files = carried_files(workload, program, by, print)
    return job_archive(Job((workload.program,), files=tuple(files)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("nat", "x86_64"),
        pytest.param("nat", "arm64", marks=pytest.mark.slow),
        ("wisconsin", "x86_64"),
        pytest.param("wisconsin-mariadb", "x86_64", marks=pytest.mark.slow),
        pytest.param("wisconsin-postgresql", "x86_64", marks=pytest.mark.slow),
    ],
)
def test_workload_brings_the_same_bytes_in_another_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arch: str
) -> None:
    pins, found = cache_dir("qemu"), []
    for cache in ("one", "another-which-is-longer"):
        (tmp_path / cache).mkdir()
        (tmp_path / cache / "qemu").symlink_to(pins)
        monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / cache))
        found.append(brought(find_workload(name), arch))
    assert found[0] == found[1]
    assert str(tmp_path).encode() not in found[0]


@pytest.mark.slow
def test_library_of_direct_calls_loads_with_the_c_library_of_any_host() -> None:
    """Programs of the host's release are given it, too."""
    by_pin, by_host = (direct_library(by) for by in (pinned("x86_64"), Compiler("x86_64")))
    assert by_pin.read_bytes() != by_host.read_bytes()
    said = subprocess.run(
        ["objdump", "-T", by_pin], capture_output=True, text=True, check=True
    ).stdout
    versions = [
        (int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", said)
    ]
    assert versions
    assert max(versions) <= (2, 16)
