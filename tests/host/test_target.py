# SPDX-License-Identifier: GPL-2.0-or-later
"""Architectures of guests on this host: their compilers and emulators, and what is reported
without.
"""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from kdelta.host.doctor import checks
from kdelta.host.emulator import OLDEST_API
from kdelta.host.gcc import Compiler
from kdelta.host.native import build_part
from kdelta.host.pin import pinned
from kdelta.host.target import Target, host_target, target, targets
from kdelta.spec.errors import LabError, UserError
from tests.conftest import FakeProgram

pytestmark = pytest.mark.long

every = pytest.mark.parametrize("name", sorted(targets()))


def elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> Target:
    """That architecture, on a host that has another one."""
    uname = os.uname()
    fake = os.uname_result((uname[0], uname[1], uname[2], uname[3], "toaster"))
    monkeypatch.setattr(os, "uname", lambda: fake)
    return target(name)


@every
@pytest.mark.slow
def test_a_program_is_compiled_for_it(name: str, tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    of = target(name)
    argv = [of.find_compiler(), "-static", "-o", str(tmp_path / "a"), str(source)]
    subprocess.run(argv, check=True)
    head = (tmp_path / "a").read_bytes()[:20]
    assert head[4] == of.bits // 32
    # e_machine of the ELF specification.
    machines = {"EM_ARM": 40, "EM_X86_64": 62, "EM_AARCH64": 183, "EM_RISCV": 243}
    assert int.from_bytes(head[18:20], "little") == machines[of.elf_machine]
    assert of.static_libc().is_file()


@every
@pytest.mark.slow
def test_the_agent_is_compiled_for_it_without_a_warning(name: str) -> None:
    assert build_part("agent", strict=True, by=Compiler(name)).is_file()


def test_the_host_compiles_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    of = host_target()
    assert of is not None
    assert of.compiler == "gcc"
    assert of.install_hint.endswith("apt-get install gcc libc6-dev")
    foreign = elsewhere(of.name, monkeypatch)
    assert foreign.compiler == f"{of.triple}-gcc"
    assert host_target() is None


@every
def test_no_compiler(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = elsewhere(name, monkeypatch)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match=f"no compiler for {name}: .*{of.triple}-gcc") as raised:
        of.find_compiler()
    assert f"gcc-{of.triple}, {of.libc_package}" in raised.value.hint


def test_no_static_library(fake_program: FakeProgram) -> None:
    fake_program("aarch64-linux-gnu-gcc", '#!/bin/sh\necho "libc.a"\n')
    with pytest.raises(LabError, match="static C library for arm64 is missing") as raised:
        target("arm64").static_libc()
    assert "libc6-dev-arm64-cross" in raised.value.hint


@every
def test_no_emulator(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match=f"no QEMU for {name}") as raised:
        target(name).find_emulator()
    assert raised.value.hint.endswith(f" {target(name).emulator_package}")


def test_no_such_architecture() -> None:
    with pytest.raises(UserError, match="kernels for mips cannot be run") as raised:
        target("mips")
    assert "arm, arm64, riscv64, x86_64" in raised.value.hint


@pytest.mark.network
@pytest.mark.slow
def test_the_doctor_tells_which_kernels_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {check.name: check for check in checks()}
    others = [name for name in targets() if not target(name).is_host]
    assert all(found[name].ok and not found[name].required for name in others)
    monkeypatch.setenv("PATH", "/nowhere")
    found = {check.name: check for check in checks("host")}
    for name in others:
        assert not found[name].ok
        assert "its kernels cannot be run here" in found[name].detail
        assert target(name).emulator_package in found[name].remedy


def test_the_doctor_names_a_compiler_that_is_missing(
    fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "plugin-api riscv64 0 1"
    script = f'#!/bin/sh\necho "QEMU emulator version 7.2"\necho "{said}"\n'
    path = fake_program("qemu-system-riscv64", script)
    (path.parent / "gcc").symlink_to("/usr/bin/gcc")
    build_part("probe", plugin_api=OLDEST_API)
    monkeypatch.setenv("PATH", str(path.parent))
    other = msgspec.structs.replace(pinned(), host="s390x")  # where the host's compiler is used
    monkeypatch.setattr("kdelta.host.doctor.pinned", lambda: other)
    check = {check.name: check for check in checks("host")}["riscv64"]
    assert check.detail.startswith("no compiler for riscv64: ")
    assert "gcc-riscv64-linux-gnu" in check.remedy
