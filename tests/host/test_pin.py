# SPDX-License-Identifier: GPL-2.0-or-later
"""The pinned QEMU: its table, where its files come from, how it is packed, and what is refused."""

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kdelta.host import emulator, pin
from kdelta.host.command import log_once
from kdelta.host.doctor import checks
from kdelta.host.emulator import binutils_command, find_compiler, find_qemu
from kdelta.host.files import sha256_file
from kdelta.host.gcc import Compiler
from kdelta.host.native import build_part
from kdelta.host.pin import (
    PIN_URL,
    Pin,
    binutils_part,
    gcc_part,
    megabytes_of,
    obtain_part,
    pack,
    pinned,
    qemu_part,
    read_pin,
    userland_part,
)
from kdelta.host.target import target, targets
from kdelta.spec.errors import KdeltaError, LabError, UserError
from kdelta.workloads.catalog import list_workloads
from tests.cli.studies import Captured, kdelta
from tests.conftest import FakeProgram
from tests.host.fake_pin import FILE, HOST_SCRIPT, NAME, PART, QEMU, deb, make_package, make_pin

X86 = target("x86_64")
NAT, GCC = userland_part("nat", "x86_64"), gcc_part("x86_64")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Iterator[Path]:
    """A folder that has the files of kdelta's pin, which is made for this test."""
    (own_cache / "qemu").unlink()
    folder = tmp_path / "mirror"
    made = make_pin(folder)
    table = tmp_path / "pin.toml"
    table.write_text(made.text())
    monkeypatch.setattr(pin, "TABLE", table)
    log_once.cache_clear()
    emulator.why_lacking.cache_clear()
    # It has no compiler.
    monkeypatch.setattr(emulator, "_built", lambda name, _, api: build_part(name, plugin_api=api))
    monkeypatch.setenv(PIN_URL, str(folder))
    pinned.cache_clear()
    yield folder
    pinned.cache_clear()


def in_cache() -> list[str]:
    """The pins of the cache of which there is a file."""
    root = pinned().folder.parent
    return [one.name for one in root.iterdir() if any(path.is_file() for path in one.rglob("*"))]


def refused(path: str = "pin") -> KdeltaError:
    """Why it is not used; the cache has no file but those of the table."""
    with pytest.raises(KdeltaError) as raised:
        find_qemu(X86, path)
    assert raised.value.hint
    left = [path for path in pinned().folder.parent.rglob("*") if path.is_file()]
    assert [path for path in left if sha256_file(path) != pinned().packages[0].sha256] == []
    return raised.value


def test_committed_table_names_all_emulators_and_no_address() -> None:
    found = pinned()
    for arch in targets():
        names = {one.name.partition("_")[0] for one in found.of(qemu_part(arch), gcc_part(arch))}
        assert {"qemu-system-data", "libc6"} < names
        assert any(name.startswith("cpp-") for name in names)
    assert megabytes_of(found.of(qemu_part("x86_64"), gcc_part("x86_64"))) <= 60
    assert "//" not in pin.TABLE.read_text()


@pytest.mark.parametrize("arch", [name for name in targets() if not target(name).is_host])
def test_committed_table_has_binutils_alone(arch: str) -> None:
    part = pinned().of(binutils_part(arch))
    names = {one.package for one in part}
    assert {f"binutils-{target(arch).triple}", "libc6"} < names
    assert not any(name.startswith("cpp-") for name in names)
    assert megabytes_of(part) <= 6


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_committed_table_has_what_workloads_start(arch: str) -> None:
    of_arch = [one for one in list_workloads().values() if arch in (one.architectures or targets())]
    parts = {part for one in of_arch if one.name != "kbuild" for part in one.pinned_parts(arch)}
    assert userland_part("nat", arch) in parts
    assert parts <= set(pinned().parts)


def with_nat(mirror: Path, says: str) -> Pin:
    """The pin with a package more, for guests of `nat`."""
    content = deb({"usr/sbin/nft": says})
    made = make_package(mirror, f"pool/n/nft_{len(says)}_amd64.deb", content, NAT)
    table = msgspec.structs.replace(pinned(), packages=(*pinned().packages, made))
    pin.TABLE.write_text(table.text())
    pinned.cache_clear()
    return pinned()


def test_packages_of_workloads_are_fetched_when_they_are_needed(mirror: Path) -> None:
    digest = pinned().digest
    found = with_nat(mirror, "1")
    assert found.digest == digest
    log: list[str] = []
    find_qemu(X86, "pin", log.append)
    assert list(found.here) == [PART]
    assert kdelta("pin", "fetch", "-w", "nat") == 3  # this pin has no compiler
    assert list(found.here) == [PART]
    assert (obtain_part(found, NAT, log.append) / "usr/sbin/nft").read_text() == "1"
    assert list(found.here) == [NAT, PART]
    assert log == [f"fetching the pin {digest} (0 MB)"] * 2


def test_pins_that_differ_in_a_workload_have_it_apart(mirror: Path) -> None:
    trees = [obtain_part(with_nat(mirror, says), NAT, print) for says in ("1", "22")]
    assert [(one / "usr/sbin/nft").read_text() for one in trees] == ["1", "22"]
    assert trees[0] != trees[1]


def test_packing_some_parts_leaves_the_others_out(mirror: Path, tmp_path: Path) -> None:
    found = with_nat(mirror, "1")
    for name, parts, count in (("all", (), 3), ("qemu", (PART,), 2)):
        pack(found, tmp_path / name, print, parts)
        with tarfile.open(tmp_path / name) as archive:
            assert len(archive.getnames()) == count
        assert pin.read_archive(tmp_path / name) == found


def test_pin_that_lacks_a_workloads_packages_leaves_the_guest_to_the_host(mirror: Path) -> None:
    gcc = make_package(mirror, "pool/g/gcc_1_amd64.deb", deb({"usr/bin/as": ""}), GCC)
    packages = (*pinned().packages, gcc)
    pin.TABLE.write_text(msgspec.structs.replace(pinned(), packages=packages).text())
    pinned.cache_clear()
    log: list[str] = []
    assert find_compiler(X86, "", log.append).pin == pinned()
    assert find_compiler(X86, "", log.append, [NAT]) == Compiler("x86_64")
    lacks = f"the pin {pinned().digest} has no part {NAT}"
    assert log[-1] == f"{lacks}: using this host's programs for the guest"
    with pytest.raises(LabError, match=lacks) as raised:
        find_compiler(X86, "pin", log.append, [NAT])
    assert "--compile-guest" in raised.value.hint


def test_binutils_are_the_hosts_for_its_own_files_and_where_none_can_be_fetched(
    mirror: Path,
) -> None:
    assert binutils_command(X86, "objdump") == ["objdump"]
    other = next(one for one in targets().values() if not one.is_host)
    assert binutils_command(other, "objdump") == [f"{other.triple}-objdump"]
    content = deb({"usr/bin/" + other.tool("objdump"): ""})
    made = make_package(mirror, "pool/b/b_1_amd64.deb", content, binutils_part(other.name))
    packages = (*pinned().packages, made)
    pin.TABLE.write_text(msgspec.structs.replace(pinned(), packages=packages).text())
    pinned.cache_clear()
    emulator.why_lacking.cache_clear()
    (found,) = binutils_command(other, "objdump")
    assert Path(found).is_relative_to(pinned().folder)
    assert Path(found).is_file()


def test_table_is_read_as_written() -> None:
    assert read_pin(pinned().text().encode(), "it") == pinned()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('qemu = "10.0.99"\n', ""),
        ("[[packages]]", "more = 1\n[[packages]]"),
        ('sha256 = "', 'sha256 = "x'),
        ("pool/main", "pool/../main"),
        ("pool/main", "/pool/main"),
        ("bytes = ", "bytes = -"),
        ("parts = [", "parts = [1, "),
        ("[[packages]]", "[[packages"),
    ],
)
def test_table_that_is_not_a_pins_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = make_pin(tmp_path).text()
    assert old in text
    with pytest.raises(UserError, match=r"cannot use x[.]toml: its table is not a pin's: "):
        read_pin(text.replace(old, new).encode(), "x.toml")


@pytest.mark.parametrize("layout", ["mirror", "flat", "address", "archive", "archive's address"])
def test_pin_is_fetched_from_where_the_variable_says(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    if layout == "flat":
        shutil.copy(mirror / FILE, mirror / NAME)
        shutil.rmtree(mirror / "pool")
    elif layout == "address":
        monkeypatch.setenv(PIN_URL, f"file://{mirror}/")
    elif "archive" in layout:
        archive = tmp_path / "it.tar"
        with tarfile.open(archive, "w") as packed:
            packed.add(mirror / FILE, NAME)
        monkeypatch.setenv(PIN_URL, f"file://{archive}" if "address" in layout else str(archive))
    log: list[str] = []
    qemu = find_qemu(X86, "pin", log.append)
    assert log == [f"fetching the pin {pinned().digest} (0 MB)"]
    assert qemu.identity == f"10.0.99, pin {pinned().digest}"
    assert qemu.plugin_apis == (2, 4)
    assert sorted(one.name for one in (pinned().folder / "debs").iterdir()) == [NAME]
    assert not (pinned().folder / PART / "tree/usr/share/doc").exists()


def test_fetched_pin_needs_no_source(mirror: Path) -> None:
    first = find_qemu(X86, "pin")
    shutil.rmtree(mirror)
    log: list[str] = []
    assert find_qemu(X86, "pin", log.append) == first
    assert log == []


@pytest.mark.usefixtures("mirror")
def test_what_a_killed_fetch_left_is_removed() -> None:
    left = pinned().folder / "debs.partial/half"
    left.parent.mkdir(parents=True)
    left.write_text("")
    find_qemu(X86, "pin")
    found = sorted(one.name for one in pinned().folder.iterdir())
    assert found == ["debs", PART, f"{PART}.manifest"]


def test_changed_table_is_another_pin(mirror: Path) -> None:
    obtain_part(pinned(), PART, print)
    changed = make_pin(mirror, deb({f"usr/bin/{QEMU}": "#!/bin/sh\n"}))
    obtain_part(changed, PART, print)
    assert sorted(in_cache()) == sorted([pinned().digest, changed.digest])


def test_package_with_another_digest_is_refused(mirror: Path) -> None:
    (mirror / FILE).write_bytes((mirror / FILE).read_bytes() + b" ")
    wanted = pinned().packages[0].sha256
    error = refused()
    assert error.message.startswith(f"cannot use the pinned QEMU: {NAME} of {mirror} has the SHA-")
    assert error.message.endswith(f"and the pin {wanted}")


def test_package_that_is_missing_is_named(mirror: Path) -> None:
    (mirror / FILE).unlink()
    error = refused()
    assert error.message == f"cannot fetch the pinned QEMU: {mirror} does not have {NAME}"
    assert "kdelta pin pack --output FILE" in error.hint


@pytest.mark.parametrize("content", [b"no archive", b"!<arch>\n", b"!<arch>\nshort"])
def test_package_that_is_no_deb_is_refused(mirror: Path, content: bytes) -> None:
    made = make_pin(mirror, content)
    pin.TABLE.write_text(made.text())
    pinned.cache_clear()
    assert refused().message.startswith(f"cannot unpack {NAME}: ")


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize("place", ["/nowhere", "file:///nowhere", "what://ever", "file:///no.tar"])
def test_source_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv(PIN_URL, place)
    assert f"cannot fetch the pinned QEMU{' from ' if place[0] == '/' else ': '}{place}" in (
        refused().message
    )


def test_packed_pin_is_used_as_file_by_the_same_name(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "kdelta-pin.tar"
    pack(pinned(), archive, print)
    shutil.rmtree(mirror)
    monkeypatch.delenv(PIN_URL)
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "other"))
    qemu = find_qemu(X86, str(archive))
    assert qemu.identity == pinned().title
    assert qemu.program.path.is_relative_to(tmp_path / "other")
    assert find_qemu(X86, "pin") == qemu


def test_archive_without_a_table_is_refused(mirror: Path, tmp_path: Path) -> None:
    archive = tmp_path / "other.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(mirror / FILE, NAME)
    assert "does not begin with pin.toml" in refused(str(archive)).message


@pytest.mark.parametrize("size", [600, 1100, 1800])
def test_archive_that_is_cut_is_refused(mirror: Path, tmp_path: Path, size: int) -> None:
    archive = tmp_path / "cut.tar"
    pack(pinned(), archive, print)
    shutil.rmtree(pinned().folder)
    shutil.rmtree(mirror)
    archive.write_bytes(archive.read_bytes()[:size])
    assert str(archive) in refused(str(archive)).message


@pytest.mark.usefixtures("mirror")
def test_rubbish_in_place_of_an_archive_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rubbish = tmp_path / "rubbish.tar"
    rubbish.write_bytes(bytes(range(256)) * 400)
    assert "`kdelta pin pack`" in refused(str(rubbish)).hint
    monkeypatch.setenv(PIN_URL, str(rubbish))
    assert refused().message.endswith("rubbish.tar: it is neither a folder nor an archive")


def test_host_of_another_architecture_is_refused(mirror: Path) -> None:
    made = make_pin(mirror, host="s390x")
    with pytest.raises(LabError, match="it is for hosts that are s390x, and this one is ") as error:
        obtain_part(made, PART, print)
    assert "--qemu PATH" in error.value.hint


APT = """#!/bin/sh
[ "$1" = indextargets ] && echo "{uris}" && exit
exit 1
"""
HELPER = """#!/bin/sh
echo "E: Failed to fetch $7  404  Not Found" >&2
exit 100
"""


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize(
    ("uris", "words"),
    [
        ("any://x/ubuntu/", "no mirror of Debian's trixie here, and Ubuntu's do not"),
        ("any://x/debian-security/", "apt has no mirror of Debian's trixie here"),
        ("mirror+file:LIST", "the mirror no longer .* any://listed/debian/pool/"),
        ("any://x/debian/", "the mirror no longer has a file of it: .*404"),
    ],
)
def test_mirrors_that_do_not_have_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fake_program: FakeProgram,
    uris: str,
    words: str,
) -> None:
    monkeypatch.delenv(PIN_URL)
    monkeypatch.setattr(pin, "_APT_HELPER", str(fake_program("apt-helper", HELPER)))
    listed = tmp_path / "debian.list"
    listed.write_text("# of this cloud\nany://listed/debian/ priority:1\n")
    fake_program("apt-get", APT.format(uris=uris.replace("LIST", str(listed))))
    with pytest.raises(LabError, match=f"cannot fetch the pinned QEMU: .*{words}") as raised:
        find_qemu(X86, "pin")
    assert PIN_URL in raised.value.hint
    assert "kdelta pin pack --output FILE" in raised.value.hint


@pytest.mark.usefixtures("mirror")
def test_host_without_apt_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PIN_URL)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "this host has no apt" in refused().message


@pytest.mark.usefixtures("mirror")
def test_pin_is_the_default(fake_program: FakeProgram) -> None:
    fake_program(QEMU, HOST_SCRIPT)
    assert find_qemu(X86).identity == pinned().title
    assert find_qemu(X86, "host").identity != pinned().title


def test_host_that_cannot_fetch_the_pin_uses_its_own_tools_and_says_so_once(
    mirror: Path, fake_program: FakeProgram
) -> None:
    fake_program(QEMU, HOST_SCRIPT)
    shutil.rmtree(mirror)
    log: list[str] = []
    assert len({find_qemu(X86, "", log.append).identity for _ in range(2)}) == 1
    assert [find_compiler(X86, "", log.append) for _ in range(2)] == [Compiler("x86_64")] * 2
    _, of_qemu, of_compiler = log
    assert of_qemu.startswith(f"cannot fetch the pinned QEMU from {mirror}: ")
    assert of_qemu.endswith(f": using this host's QEMU {find_qemu(X86, 'host').version}")
    assert of_compiler.endswith(": using this host's programs for the guest")


def test_compiler_of_a_pin_that_is_asked_for_is_not_replaced(mirror: Path, tmp_path: Path) -> None:
    archive = tmp_path / "kdelta-pin.tar"
    pack(pinned(), archive, print)
    shutil.rmtree(mirror)
    for asked in ("pin", str(archive)):
        with pytest.raises(LabError, match=f"the pin {pinned().digest} has no part gcc-x86_64"):
            find_compiler(X86, asked)


@pytest.mark.parametrize("lacks", ["program", "plugins"])
def test_host_without_any_qemu_gets_both_reasons(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, fake_program: FakeProgram, lacks: str
) -> None:
    shutil.rmtree(mirror)
    words = "no QEMU for x86_64: "
    if lacks == "program":
        monkeypatch.setattr("kdelta.host.target.shutil.which", lambda _: None)
    else:
        words = "QEMU 8.2 was built without plugins: "
        fake_program(
            QEMU,
            '#!/bin/sh\n[ "$1" = --version ] && echo "QEMU emulator version 8.2" && exit\n'
            "echo -plugin: invalid option >&2; exit 1\n",
        )
    error = refused("")
    assert error.message.startswith("cannot fetch the pinned QEMU from")
    assert f"; and {words}" in error.message
    assert PIN_URL in error.hint
    assert "; or " in error.hint


def pin_check() -> tuple[bool, str]:
    found = next(one for one in checks() if one.name == "pin")
    return found.ok, found.detail


def test_doctor_reports_the_state_of_the_pin(mirror: Path) -> None:
    title = f"QEMU {pinned().title}, 0 MB for x86-64"
    assert pin_check() == (True, f"{title}: not fetched yet")
    assert not pinned().here
    obtain_part(pinned(), PART, print)
    assert pin_check() == (True, f"{title}: in {pinned().folder}: {PART}")
    pin.TABLE.write_text(make_pin(mirror, host="s390x").text())
    pinned.cache_clear()
    ok, detail = pin_check()
    assert not ok
    assert "hosts that are s390x" in detail


@pytest.mark.usefixtures("mirror")
def test_command_shows_and_packs(tmp_path: Path, capsys: Captured) -> None:
    archive = tmp_path / "packed"
    assert kdelta("pin") == 0
    assert capsys.readouterr().out == (
        f"QEMU {pinned().title}, {pinned().compiler_title}\n"
        "  1 packages of Debian trixie, for hosts that are x86_64\n"
        f"  {PART}   0 MB  not fetched yet\n"
    )
    obtain_part(pinned(), PART, print)
    assert kdelta("pin") == 0
    assert f"  {PART}   0 MB  in {pinned().folder / PART}\n" in capsys.readouterr().out
    assert kdelta("pin", "pack", "--output", str(archive)) == 0
    assert pin.read_archive(archive) == pinned()


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["pack"], "pack needs a file to write"),
        (["unpack"], "cannot use ACTION unpack"),
        (["pack", "--output", "/nowhere/x.tar"], "/nowhere/x.tar"),
    ],
)
def test_command_refuses(capsys: Captured, words: list[str], error: str) -> None:
    assert kdelta("pin", *words) in (2, 3)
    said = capsys.readouterr().err
    assert error in said
    assert "Traceback" not in said
