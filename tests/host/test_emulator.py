# SPDX-License-Identifier: GPL-2.0-or-later
"""Which QEMU is used, what is asked of it, and how one that does not fit is refused."""

from pathlib import Path

import pytest

from kdelta.host import emulator
from kdelta.host.emulator import NEWEST_API, HostQemu, find_qemu
from kdelta.host.target import target
from kdelta.spec.errors import KdeltaError, LabError, UserError
from tests.caches import forget_checks
from tests.conftest import FakeProgram

NAME = "qemu-system-x86_64"
X86 = target("x86_64")
FAKE = """#!/bin/sh
case "$*" in
*--version*) echo "QEMU emulator version 99.1 (Fake 1:99)"; exit 0;;
esac
{answer}
"""
REFUSES = "could not load plugin: plugin requires API version 1, but this QEMU supports only"


def fake(folder: Path, answer: str) -> Path:
    """A QEMU that answers so when it is asked for its plugin interface."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    path.write_text(FAKE.format(answer=answer))
    path.chmod(0o755)
    return path


def refusing(words: str) -> str:
    return f'echo "{NAME}: {words}" >&2; exit 1'


@pytest.mark.slow
def test_the_hosts_qemu_takes_the_plugin() -> None:
    qemu = find_qemu(X86, "host")
    oldest, newest = qemu.plugin_apis
    assert oldest <= newest <= NEWEST_API
    assert qemu.argv == (NAME,)
    assert qemu.identity == qemu.version
    assert qemu.plugin().name == "plugin"


def test_identity_is_that_of_what_runs_in_the_end(tmp_path: Path) -> None:
    """A script in QEMU's place starts another program, with options and variables of its own."""
    real, wrapper = tmp_path / "real", tmp_path / NAME
    report = """#!/usr/bin/env python3
# {mark}
import os, sys
words = "\\0".join(["qemu", *sys.argv[1:]]) + "\\0"
variables = "\\0".join(f"{{k}}={{v}}" for k, v in os.environ.items()) + "\\0"
parts = (sys.argv[0], words, variables)
print("QEMU emulator version 9.2" if "--version" in sys.argv else "plugin-api x86_64 0 4")
print("runs-as", *(one.encode().hex() for one in parts))
"""

    def identity(content: str, option: str = "-L /nothing", variable: str = "A=1") -> str:
        real.write_text(report.format(mark=content))
        real.chmod(0o755)
        wrapper.write_text(f'#!/bin/sh\n. {tmp_path}/settings\nexec {real} $OPTION "$@"\n')
        wrapper.chmod(0o755)
        (tmp_path / "settings").write_text(f"OPTION='{option}'\nexport {variable}\n")
        forget_checks()
        emulator._probed_once.cache_clear()
        emulator._wrapped.cache_clear()
        return find_qemu(X86, str(wrapper)).identity

    found = identity("one")
    assert found == identity("one")
    firmware = tmp_path / "firmware"
    firmware.write_text("1")
    others = [identity("two"), identity("one", "-L /other"), identity("one", variable="A=2")]
    others.append(identity("one", f"-bios {firmware}"))
    firmware.write_text("22")
    others.append(identity("one", f"-bios {firmware}"))
    assert len({found, *others}) == 6


def test_a_qemu_that_takes_only_later_plugins_is_asked_again(tmp_path: Path) -> None:
    later = '[ -e "$0.asked" ] && echo "plugin-api x86_64 2 4" && exit 0; touch "$0.asked"; '
    path = fake(tmp_path, later + refusing(f"{REFUSES} a minimum version of 2"))
    assert find_qemu(X86, str(path)).plugin_apis == (2, 4)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            refusing(f"{REFUSES} a minimum version of 8"),
            r"is too new: .*version 8, .*7\.2 to 11",
        ),
        ("echo plugin-api x86_64 7 8", r"is too new: .* version 8, and kdelta knows"),
        (refusing(f"{REFUSES} up to version 0"), r"is too old: kdelta knows .* QEMU 7\.2 to 11"),
        (refusing("-plugin: invalid option"), "was built without plugins: .*invalid option"),
        (refusing("plugin interface not enabled in this build"), "was built without plugins"),
        (refusing("Could not load plugin /probe: GLIBC_2.99 not found"), "cannot load .*GLIBC"),
        (refusing("cannot allocate memory"), "does not start: .*cannot allocate memory"),
    ],
)
def test_a_qemu_that_does_not_fit_is_refused(tmp_path: Path, answer: str, words: str) -> None:
    qemu = find_qemu(X86, str(fake(tmp_path, answer)))
    with pytest.raises(LabError, match=f"QEMU 99[.]1 .*{words}") as raised:
        _ = qemu.plugin_apis
    assert "--qemu PATH" in raised.value.hint


def test_a_program_that_is_not_qemu_is_refused() -> None:
    with pytest.raises(LabError, match="cannot use /bin/true as QEMU: --version says "):
        _ = find_qemu(X86, "/bin/true").version


@pytest.mark.parametrize("text", ["text", ""])
def test_a_file_that_cannot_be_executed_is_refused_with_a_way_out(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / NAME
    path.write_text(text)
    path.chmod(0o755)
    with pytest.raises(LabError, match=f"cannot use {path} as QEMU: .*Exec format") as raised:
        _ = find_qemu(X86, str(path)).plugin_apis
    assert "--qemu PATH" in raised.value.hint


def test_a_qemu_for_another_architecture_is_refused(tmp_path: Path) -> None:
    qemu = find_qemu(X86, str(fake(tmp_path, "echo plugin-api aarch64 0 1")))
    with pytest.raises(UserError, match="emulates aarch64, and the kernel is for x86_64"):
        _ = qemu.plugin_apis


@pytest.mark.parametrize("what", ["nothing", "empty folder", "data"])
def test_a_path_without_qemu_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "there"
    if what == "empty folder":
        path.mkdir()
    elif what == "data":
        path.write_text("data")
    with pytest.raises(UserError, match=f"cannot use --qemu {path}: ") as raised:
        find_qemu(X86, str(path))
    assert raised.value.hint


def test_no_qemu_on_the_path_is_an_error_that_names_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match="no QEMU for x86_64") as raised:
        find_qemu(X86, "host")
    assert X86.emulator_package in raised.value.hint


def test_the_qemu_on_the_path_is_looked_for_each_time(fake_program: FakeProgram) -> None:
    fake_program(NAME, FAKE.replace("99", "98").format(answer="exit 1"))
    before = find_qemu(X86, "host").version
    fake_program(NAME, FAKE.format(answer="exit 1"))
    after = find_qemu(X86, "host").version
    assert (before, after) == ("98.1 (Fake 1:98)", "99.1 (Fake 1:99)")


@pytest.mark.parametrize("place", ["", "bin", "usr/bin"])
def test_a_folder_that_qemu_was_built_into_is_searched(tmp_path: Path, place: str) -> None:
    path = fake(tmp_path / place, "exit 1")
    assert find_qemu(X86, str(tmp_path)).argv == (str(path),)


def test_unpacked_packages_are_started_by_their_own_loader(tmp_path: Path) -> None:
    program = fake(tmp_path / "usr/bin", "exit 1")
    libraries = tmp_path / "usr/lib/x86_64-linux-gnu"
    firmware = tmp_path / "usr/share/seabios"
    for folder in (libraries / "qemu", firmware):
        folder.mkdir(parents=True)
    loader = libraries / "ld-linux-x86-64.so.2"
    loader.touch()
    assert find_qemu(X86, str(tmp_path)).argv == (
        "env", f"QEMU_MODULE_DIR={libraries / 'qemu'}", str(loader), "--library-path",
        str(libraries), str(program), "-L", str(firmware),
    )  # fmt: skip


def identity(folder: Path) -> str:
    found: HostQemu = find_qemu(X86, str(folder))
    return found.identity


def test_another_program_or_firmware_of_one_version_is_another_qemu(tmp_path: Path) -> None:
    program = fake(tmp_path / "usr/bin", "exit 1")
    firmware = tmp_path / "usr/share/seabios"
    firmware.mkdir(parents=True)
    (firmware / "bios-256k.bin").write_bytes(b"one")
    found = [identity(tmp_path)]
    (firmware / "bios-256k.bin").write_bytes(b"other")
    found.append(identity(tmp_path))
    program.write_text(FAKE.format(answer="exit 2"))
    found.append(identity(tmp_path))
    assert len(set(found)) == 3
    assert all(one.startswith("99.1 (Fake 1:99), SHA-256 ") for one in found)


def test_the_same_qemu_in_another_folder_is_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        fake(tmp_path / name / "bin", "exit 1")
    assert identity(tmp_path / "a") == identity(tmp_path / "b")


def test_every_refusal_has_a_hint(tmp_path: Path) -> None:
    for path in ("/nonesuch", str(tmp_path), "/bin/true"):
        with pytest.raises(KdeltaError) as raised:
            _ = find_qemu(X86, path).version
        assert raised.value.hint


def test_cpu_that_qemu_does_not_have_is_refused_with_like_names(tmp_path: Path) -> None:
    models = "Available CPUs:\\n  Skylake-Client (alias)\\n  qemu64 QEMU\\n\\nRecognized CPUID: avx"
    qemu = find_qemu(X86, str(fake(tmp_path, f'printf "{models}"')))
    qemu.must_have_cpu("")
    qemu.must_have_cpu("Skylake-Client,-avx")
    with pytest.raises(UserError, match="has no CPU called 'Skylake' for x86_64") as raised:
        qemu.must_have_cpu("Skylake")
    assert raised.value.hint == "there is: Skylake-Client"
    with pytest.raises(UserError, match="no CPU called 'avx'"):
        qemu.must_have_cpu("avx")


def test_qemu_that_lists_no_cpus_is_not_blamed_for_a_cpu(tmp_path: Path) -> None:
    answer = f"echo qemu64; {refusing('cannot allocate memory')}"
    find_qemu(X86, str(fake(tmp_path, answer))).must_have_cpu("Skylake")
