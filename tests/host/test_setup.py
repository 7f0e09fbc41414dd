# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/setup on hosts that lack something: what it installs, what it asks for, when it stops."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What the script itself needs, and all that it looks for but QEMU.
PRESENT = (
    "bash cat dirname env gcc git head id ld ln make dpkg-deb python3 sha256sum sh touch zstd"
    " bc bison ccache flex ld.lld perl xz"
)
OTHER_EMULATORS = ("qemu-system-aarch64", "qemu-system-arm", "qemu-system-riscv64")
CROSS = ("arm-linux-gnueabihf-gcc", "aarch64-linux-gnu-gcc", "riscv64-linux-gnu-gcc")


class Host:
    """A copy of the set-up, and a PATH on which there is only what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        (self.checkout / "scripts").mkdir(parents=True)
        for name in ("setup", "install-packages"):
            shutil.copy(ROOT / "scripts" / name, self.checkout / "scripts" / name)
        for name in ("requirements.txt", "requirements-uv.txt", "pyproject.toml"):
            (self.checkout / name).write_text("")
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in PRESENT.split():
            found = shutil.which(name)
            assert found
            (self.bin / name).symlink_to(found)
        self.log = folder / "log"
        self.log.write_text("")
        for name in ("sleep", *OTHER_EMULATORS):
            self.script(name, "")
        (folder / "libc.a").touch()
        for name in CROSS:
            self.script(name, f"echo {folder / 'libc.a'}")
        self.log.write_text("")
        # A Python environment that is up to date, so that this part has nothing to do.
        self.script("uv", "exit 0")
        (self.checkout / ".venv/bin").mkdir(parents=True)
        (self.checkout / ".venv/bin/python").symlink_to("/usr/bin/true")

    def script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.log}\n{text}\n')
        path.chmod(0o755)

    def run(self) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", self.checkout / "scripts/setup"],
            env={"PATH": str(self.bin), "HOME": str(self.checkout), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[str]:
        """What was run, but for compilers that were asked for their library."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if not line.endswith("-print-file-name=libc.a")]

    def installing(self) -> list[str]:
        """What apt-get was asked for, with the pauses in between."""
        return [call for call in self.calls() if call.startswith(("apt-get", "sleep"))]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


UPDATE = "apt-get -o Acquire::Retries=3 update -q"
INSTALL = "apt-get -o Acquire::Retries=3 install -q -y --no-install-recommends qemu-system-x86"


def test_without_apt_it_names_the_packages_and_stops(host: Host) -> None:
    done = host.run()
    assert done.returncode == 1
    assert "no apt-get; install these by hand" in done.stderr
    assert "qemu-system-x86" in done.stderr
    assert host.calls() == []


def test_with_all_there_it_needs_no_apt(host: Host) -> None:
    host.script("qemu-system-x86_64", "")
    done = host.run()
    assert done.returncode == 0, done.stderr
    assert not any(call.startswith("apt") for call in host.calls())


def test_root_installs_what_is_missing(host: Host) -> None:
    host.script("id", "echo 0")
    new = host.bin / "qemu-system-x86_64"
    host.script("apt-get", f'[ "$3" = update ] || ln -s /usr/bin/true {new}')
    done = host.run()
    assert done.returncode == 0, done.stderr
    assert "installing system packages: qemu-system-x86" in done.stderr
    assert host.installing() == [UPDATE, INSTALL]


def test_older_lists_do_if_no_newer_ones_can_be_loaded(host: Host) -> None:
    host.script("id", "echo 0")
    new = host.bin / "qemu-system-x86_64"
    host.script("apt-get", f'[ "$3" = install ] && ln -s /usr/bin/true {new}')
    done = host.run()
    assert done.returncode == 0, done.stderr
    assert "apt-get update failed; going on with the lists that are there" in done.stderr
    assert host.installing() == [UPDATE, INSTALL]


def test_mirror_that_is_being_renewed_is_asked_again(host: Host) -> None:
    host.script("id", "echo 0")
    new = host.bin / "qemu-system-x86_64"
    # Without the list of the package, its installation fails.
    host.script(
        "apt-get",
        f'[ "$(grep -c update {host.log})" -ge 3 ] || exit 100\n'
        f'[ "$3" = update ] || ln -s /usr/bin/true {new}',
    )
    (host.bin / "grep").symlink_to(shutil.which("grep") or "")
    done = host.run()
    assert done.returncode == 0, done.stderr
    once = [UPDATE, INSTALL]
    assert host.installing() == [*once, "sleep 5", *once, "sleep 15", *once]


def test_what_kernels_are_built_with_is_installed(host: Host) -> None:
    host.script("qemu-system-x86_64", "")
    host.script("id", "echo 0")
    (host.bin / "bison").unlink()
    # Knows all headers but one.
    host.script(
        "gcc", 'case "$1" in -E) read line; [ "$line" != "#include <gelf.h>" ];; *) echo /;; esac'
    )
    host.script("apt-get", "exit 100")
    assert "installing system packages: bison libelf-dev\n" in host.run().stderr


def test_what_other_architectures_need_is_installed(host: Host) -> None:
    host.script("qemu-system-x86_64", "")
    host.script("id", "echo 0")
    (host.bin / "qemu-system-arm").unlink()
    (host.bin / "aarch64-linux-gnu-gcc").unlink()
    host.script("riscv64-linux-gnu-gcc", "echo libc.a")
    host.script("apt-get", "exit 100")
    said = host.run().stderr
    arm64, riscv64 = (
        f"gcc-{name}-linux-gnu libc6-dev-{dpkg}-cross"
        for name, dpkg in (("aarch64", "arm64"), ("riscv64", "riscv64"))
    )
    assert f"installing system packages: qemu-system-arm {arm64} {riscv64}\n" in said


def test_others_install_by_sudo(host: Host) -> None:
    host.script("id", "echo 1000")
    new = host.bin / "qemu-system-x86_64"
    host.script("apt-get", f'[ "$3" = update ] || ln -s /usr/bin/true {new}')
    host.script("sudo", 'exec "$@"')
    assert host.run().returncode == 0
    assert f"sudo {INSTALL}" in host.calls()


def test_others_without_sudo_are_told_what_root_must_do(host: Host) -> None:
    host.script("id", "echo 1000")
    host.script("apt-get", "exit 1")
    done = host.run()
    assert done.returncode == 1
    assert "as root run: apt-get install qemu-system-x86" in done.stderr


def test_installation_that_fails(host: Host) -> None:
    host.script("id", "echo 0")
    host.script("apt-get", "exit 100")
    done = host.run()
    assert done.returncode == 1
    assert "failed: apt-get install -q -y --no-install-recommends qemu-system-x86" in done.stderr
    assert host.calls().count(INSTALL) == 4


def test_installation_that_brings_nothing(host: Host) -> None:
    host.script("id", "echo 0")
    host.script("apt-get", "exit 0")
    done = host.run()
    assert done.returncode == 1
    assert "still missing after the installation: qemu-system-x86" in done.stderr


def test_empty_package_lists_are_loaded(host: Host) -> None:
    host.script("qemu-system-x86_64", "")
    host.script("id", "echo 0")
    host.script("apt-cache", "")
    host.script("apt-get", "")
    assert host.run().returncode == 0
    assert "apt-get update -q" in host.calls()
    host.log.write_text("")
    host.script("apt-cache", "echo linux-image-6.1")
    assert host.run().returncode == 0
    assert "apt-get update -q" not in host.calls()


def test_second_run_installs_no_python_package(host: Host) -> None:
    host.script("qemu-system-x86_64", "")
    assert host.run().returncode == 0
    assert any(call.startswith("uv pip sync") for call in host.calls())
    host.log.write_text("")
    assert host.run().returncode == 0
    assert host.calls() == []
    (host.checkout / "requirements.txt").write_text("changed")
    assert host.run().returncode == 0
    assert any(call.startswith("uv pip sync") for call in host.calls())


def test_the_requirements_name_no_host() -> None:
    for name in ("requirements.txt", "requirements-uv.txt", "requirements-docs.txt"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert text.count("==") <= text.count("--hash=sha256:")
    assert os.access(ROOT / "scripts/setup", os.X_OK)
