# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/setup on hosts that lack something: what it installs, what it asks for, when it stops."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# What the script itself needs, and all that it looks for but zstd.
PRESENT = (
    "bash cat dirname env gcc git grep head id ld ln make dpkg-deb python3 sha256sum sh touch uname"
    " bc bison bzip2 ccache flex ld.lld patch perl xz"
)
CROSS = ("arm-linux-gnueabihf-gcc", "aarch64-linux-gnu-gcc", "riscv64-linux-gnu-gcc")


class Host:
    """A copy of the set-up, and a PATH on which there is only what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        self.pin_url = "http://example.org"
        (self.checkout / "scripts").mkdir(parents=True)
        for name in ("setup", "install-packages", "packages.txt"):
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
        self.script("sleep", "")
        (folder / "libc.a").touch()
        for name in CROSS:
            self.script(name, f"echo {folder / 'libc.a'}")
        self.log.write_text("")
        self.os_release = folder / "os-release"
        self.os_release.write_text("ID=debian\n")
        # A Python environment that is up to date, so that this part has nothing to do.
        self.script("uv", "exit 0")
        (self.checkout / ".venv/bin").mkdir(parents=True)
        (self.checkout / ".venv/bin/python").symlink_to("/usr/bin/true")

    def script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.log}\n{text}\n')
        path.chmod(0o755)

    def run(self, *architectures: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", self.checkout / "scripts/setup", *architectures],
            env={
                "PATH": str(self.bin),
                "HOME": str(self.checkout),
                "LC_ALL": "C",
                "KDELTA_OS_RELEASE": str(self.os_release),
                "KDELTA_PIN_URL": self.pin_url,
            },
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
INSTALL = "apt-get -o Acquire::Retries=3 install -q -y --no-install-recommends zstd"


@pytest.mark.parametrize("release", ["ID=debian", "ID=slackware", ""])
def test_without_a_known_manager_it_names_the_packages_and_stops(host: Host, release: str) -> None:
    host.os_release.write_text(f"{release}\n")
    done = host.run()
    assert done.returncode == 1
    assert "no apt-get, dnf or pacman; install these by hand" in done.stderr
    assert "Debian zstd, Fedora zstd, Arch zstd\n" in done.stderr
    assert host.calls() == []


# Of other distributions than Debian: what /etc/os-release has of them, and how they install.
DNF = "dnf install -q -y --setopt=install_weak_deps=False --setopt=strict=0"
MANAGERS = {
    "ID=fedora": DNF,
    'ID="rocky"\nID_LIKE="rhel centos fedora"': DNF,
    "ID=arch": "pacman -S --needed --noconfirm",
    "ID=cachyos\nID_LIKE=arch": "pacman -S --needed --noconfirm",
}


@pytest.mark.parametrize("release", MANAGERS)
def test_other_managers_install_by_their_own_names(host: Host, release: str) -> None:
    host.os_release.write_text(f"{release}\n")
    host.script("id", "echo 1000")
    host.script("sudo", 'exec "$@"')
    host.script("apt-get", "exit 100")
    install = MANAGERS[release]
    manager = install.partition(" ")[0]
    new = [host.bin / name for name in ("zstd", "xz", "ld.lld")]
    for path in new:
        path.unlink(missing_ok=True)
    host.script(manager, "; ".join(f"ln -s /usr/bin/true {path}" for path in new))
    done = host.run()
    assert done.returncode == 0, done.stderr
    names = {
        "dnf": "zstd xz lld",
        "pacman": "zstd xz lld",
    }
    installed = [call for call in host.calls() if call.startswith(manager)]
    assert installed == [f"{install} {names[manager]}"]
    assert f"sudo {installed[0]}" in host.calls()


@pytest.mark.parametrize(
    ("release", "machine", "package"),
    [
        ("fedora", "x86_64", "qemu-system-x86-core"),
        ("arch", "x86_64", "qemu-system-x86"),
        ("arch", "aarch64", "qemu-system-arm qemu-system-aarch64"),
        ("ubuntu", "x86_64", "qemu-system-x86"),
        ("debian", "x86_64", ""),
    ],
)
def test_qemu_is_installed_where_no_pin_can_be_fetched(
    host: Host, release: str, machine: str, package: str
) -> None:
    host.pin_url = ""
    host.os_release.write_text(f"ID={release}\n")
    host.script("zstd", "")
    host.script("id", "echo 0")
    (host.bin / "uname").unlink()
    host.script("uname", f"echo {machine}")
    for manager in ("dnf", "pacman"):
        host.script(manager, "exit 1")
    if release in ("debian", "ubuntu"):
        host.script("apt-get", f"[ $1 = indextargets ] && echo http://example.org/{release}/")
    done = host.run()
    if not package:
        assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "system packages" in line] == (
        [f"setup: installing system packages: {package}"] if package else []
    )


def test_parts_that_no_repository_has_are_named_and_asked_for_once(host: Host) -> None:
    """RHEL has ccache and glibc-static only in repositories that are not enabled."""
    host.os_release.write_text("ID=rhel\n")
    host.script("id", "echo 0")
    for name in ("ccache", "dpkg-deb"):  # without apt, dpkg is of no use
        (host.bin / name).unlink()
    (host.bin / "mkdir").symlink_to(shutil.which("mkdir") or "")
    host.script("dnf", f"ln -sf /usr/bin/true {host.bin / 'zstd'}")
    done = host.run()
    assert done.returncode == 0, done.stderr
    assert "not installed: ccache; kdelta works without" in done.stderr
    asked = [f"{DNF} zstd ccache", f"{DNF} ccache"]
    assert [call for call in host.calls() if call.startswith("dnf")] == asked
    assert host.run().returncode == 0
    assert [call for call in host.calls() if call.startswith("dnf")] == asked


def test_what_the_distribution_lacks_is_no_failure(host: Host) -> None:
    """Fedora has no C library for its cross compilers."""
    host.os_release.write_text("ID=fedora\n")
    host.script("zstd", "")
    for name in CROSS:
        (host.bin / name).unlink()
    host.script("dnf", "exit 1")
    done = host.run("arm")
    assert done.returncode == 0, done.stderr
    assert "this distribution has no gcc-arm-linux-gnueabihf libc6-dev-armhf-cross" in done.stderr
    assert host.calls() == [call for call in host.calls() if not call.startswith("dnf")]


@pytest.mark.parametrize(("release", "said"), [("fedora", "dnf install"), ("arch", "pacman -S")])
def test_without_sudo_the_manager_of_the_host_is_named(host: Host, release: str, said: str) -> None:
    host.os_release.write_text(f"ID={release}\n")
    host.script("id", "echo 1000")
    host.script(said.partition(" ")[0], "exit 1")
    done = host.run()
    assert done.returncode == 1
    assert f"as root run: {said} zstd" in done.stderr


def test_every_package_of_the_set_up_is_in_the_table() -> None:
    table = (ROOT / "scripts/packages.txt").read_text().splitlines()
    rows = [line.split() for line in table if not line.startswith("#")]
    assert all(len(row) == 3 for row in rows)
    known = {row[0] for row in rows}
    for name in ("setup", "setup-tests"):
        named = re.findall(
            r"\|\| (?:echo|printf) '?([a-z0-9+\\-]+)'?", (ROOT / "scripts" / name).read_text()
        )
        assert {one for text in named for one in text.split("\\n") if one} <= known


def test_with_all_there_it_needs_no_apt(host: Host) -> None:
    host.script("zstd", "")
    done = host.run()
    assert done.returncode == 0, done.stderr
    assert not any(call.startswith("apt") for call in host.calls())


def test_root_installs_what_is_missing(host: Host) -> None:
    host.script("id", "echo 0")
    new = host.bin / "zstd"
    host.script("apt-get", f'[ "$3" = update ] || ln -s /usr/bin/true {new}')
    done = host.run()
    assert done.returncode == 0, done.stderr
    assert "installing system packages: zstd" in done.stderr
    assert host.installing() == [UPDATE, INSTALL]


def test_older_lists_do_if_no_newer_ones_can_be_loaded(host: Host) -> None:
    host.script("id", "echo 0")
    new = host.bin / "zstd"
    host.script("apt-get", f'[ "$3" = install ] && ln -s /usr/bin/true {new}')
    done = host.run()
    assert done.returncode == 0, done.stderr
    assert "apt-get update failed; going on with the lists that are there" in done.stderr
    assert host.installing() == [UPDATE, INSTALL]


def test_mirror_that_is_being_renewed_is_asked_again(host: Host) -> None:
    host.script("id", "echo 0")
    new = host.bin / "zstd"
    # Without the list of the package, its installation fails.
    host.script(
        "apt-get",
        f'[ "$(grep -c update {host.log})" -ge 3 ] || exit 100\n'
        f'[ "$3" = update ] || ln -s /usr/bin/true {new}',
    )
    done = host.run()
    assert done.returncode == 0, done.stderr
    once = [UPDATE, INSTALL]
    assert host.installing() == [*once, "sleep 5", *once, "sleep 15", *once]


def test_what_kernels_are_built_with_is_installed(host: Host) -> None:
    host.script("zstd", "")
    host.script("id", "echo 0")
    (host.bin / "bison").unlink()
    # Knows all headers but one.
    host.script(
        "gcc", 'case "$1" in -E) read line; [ "$line" != "#include <gelf.h>" ];; *) echo /;; esac'
    )
    host.script("apt-get", "exit 100")
    assert "installing system packages: bison libelf-dev\n" in host.run().stderr


def test_cross_compilers_are_installed_for_the_architectures_that_are_named(host: Host) -> None:
    host.script("zstd", "")
    host.script("id", "echo 0")
    for name in CROSS[:2]:
        (host.bin / name).unlink()
    host.script("riscv64-linux-gnu-gcc", "echo libc.a")
    host.script("apt-get", "exit 100")
    arm64, riscv64 = (
        f"gcc-{name}-linux-gnu libc6-dev-{dpkg}-cross"
        for name, dpkg in (("aarch64", "arm64"), ("riscv64", "riscv64"))
    )
    said = host.run("arm64", "riscv64").stderr
    assert f"installing system packages: {arm64} {riscv64}\n" in said
    plain = host.run()
    assert plain.returncode == 0
    assert "system packages" not in plain.stderr


def test_an_architecture_that_there_is_not_is_refused(host: Host) -> None:
    done = host.run("mips")
    assert done.returncode == 1
    assert "no such architecture: mips; there is arm, arm64 and riscv64" in done.stderr
    assert host.calls() == []


def test_others_install_by_sudo(host: Host) -> None:
    host.script("id", "echo 1000")
    new = host.bin / "zstd"
    host.script("apt-get", f'[ "$3" = update ] || ln -s /usr/bin/true {new}')
    host.script("sudo", 'exec "$@"')
    assert host.run().returncode == 0
    assert f"sudo {INSTALL}" in host.calls()


def test_others_without_sudo_are_told_what_root_must_do(host: Host) -> None:
    host.script("id", "echo 1000")
    host.script("apt-get", "exit 1")
    done = host.run()
    assert done.returncode == 1
    assert "as root run: apt-get install zstd" in done.stderr


def test_installation_that_fails(host: Host) -> None:
    host.script("id", "echo 0")
    host.script("apt-get", "exit 100")
    done = host.run()
    assert done.returncode == 1
    assert "failed: apt-get install -q -y --no-install-recommends zstd" in done.stderr
    assert host.calls().count(INSTALL) == 4


def test_installation_that_brings_nothing(host: Host) -> None:
    host.script("id", "echo 0")
    host.script("apt-get", "exit 0")
    done = host.run()
    assert done.returncode == 1
    assert "still missing after the installation: zstd" in done.stderr


def test_empty_package_lists_are_loaded(host: Host) -> None:
    host.script("zstd", "")
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
    host.script("zstd", "")
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


def test_list_names_what_an_empty_system_would_get(host: Host) -> None:
    for name in (*PRESENT.split(), *CROSS):
        if name not in (
            "bash",
            "cat",
            "dirname",
            "grep",
            "id",
            "ln",
            "mkdir",
            "env",
            "uname",
            "sh",
        ):
            (host.bin / name).unlink(missing_ok=True)
    host.script("id", "echo 0")
    host.script("apt-get", "exit 100")
    listed = host.run("--list")
    assert listed.returncode == 0, listed.stderr
    assert host.calls() == []
    # Python is looked for in /usr/bin, too, which a test cannot hide.
    names = listed.stdout.removesuffix("python3\npython3-venv\n").split()
    assert f"installing system packages: {' '.join(names)}\n" in host.run().stderr


@pytest.mark.network  # apt is asked for its mirrors
@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="all is on the PATH without dpkg")
def test_lean_path_has_what_set_up_installs_and_nothing_by_hand(tmp_path: Path) -> None:
    by_hand = tmp_path / "bin/qemu-system-x86_64"
    by_hand.parent.mkdir()
    by_hand.write_text("#!/bin/sh\n")
    by_hand.chmod(0o755)
    env = {**os.environ, "PATH": f"{by_hand.parent}:{os.environ['PATH']}"}
    argv = [ROOT / "scripts/lean-path", tmp_path / "lean"]
    said = subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said == f"{tmp_path / 'lean'}\n"
    found = {path.name for path in (tmp_path / "lean").iterdir()}
    assert {"gcc", "cc", "ld", "make", "git", "bison", "awk", "sh", "ls", "python3"} <= found
    assert not {"qemu-system-x86_64", "go", "node", "aarch64-linux-gnu-as"} & found
    listed = subprocess.run(
        [ROOT / "scripts/setup", "--list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()
    assert {"gcc", "git", "python3-venv"} < set(listed)
    assert not any("qemu" in name or "cross" in name for name in listed)
