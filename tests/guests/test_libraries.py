# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of the host: found, with loader and libraries, so that they start elsewhere."""

import os
import subprocess
from pathlib import Path

import pytest

from kdelta.guests.job import JobFile
from kdelta.guests.libraries import carry, parse_file_option, parse_loader_list, path_of_command
from kdelta.host.emulator import binutils_command
from kdelta.host.target import target
from kdelta.spec.errors import UserError
from tests.conftest import FakeProgram
from tests.kernels.samples import elf_header

LOADER = "/lib64/ld-linux-x86-64.so.2"


def compiled(folder: Path, name: str, source: str, *flags: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.c").write_text(source)
    subprocess.run(["gcc", "-o", folder / name, folder / "source.c", *flags], check=True)
    return folder / name


def executable(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def guests(files: tuple[JobFile, ...]) -> set[str]:
    return {file.guest for file in files}


def test_static_program_comes_alone(tmp_path: Path) -> None:
    program = compiled(tmp_path, "a", "int main(void) { return 0; }", "-static")
    carried = carry([str(program), "word"], [])
    assert carried.argv == (str(program), "word")
    assert carried.files == (JobFile(program, str(program), 0o755),)
    assert carried.env == ()


def test_dynamic_program_comes_with_all_it_loads() -> None:
    carried = carry(["ls"], [])
    assert carried.argv[0].endswith("/ls")
    said = subprocess.run(["ldd", carried.argv[0]], capture_output=True, text=True, check=True)
    wanted = {word for word in said.stdout.split() if word.startswith("/")}
    assert wanted
    assert guests(carried.files) == {carried.argv[0], LOADER, *wanted}
    assert all(str(file.host) == file.guest for file in carried.files)


def test_carried_program_starts_in_another_root(tmp_path: Path) -> None:
    """The loader runs with nothing but what was carried, by the paths that it has there."""
    carried = carry(["ls", "/"], [])
    for file in carried.files:
        place = tmp_path / file.guest.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.host.read_bytes())
        place.chmod(file.mode)
    done = subprocess.run(
        ["unshare", "--map-root-user", "--root", tmp_path, *carried.argv],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare failed" in done.stderr:
        pytest.skip("this host lets no one make a user namespace")
    assert done.stderr == ""
    assert set(done.stdout.split()) == {path.name for path in tmp_path.iterdir()}


def test_library_outside_the_usual_folders(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    compiled(folder, "libvalue.so", "int value(void) { return 3; }", "-shared", "-fPIC")
    program = compiled(
        tmp_path,
        "a",
        "int value(void); int main(void) { return value(); }",
        f"-L{folder}",
        "-lvalue",
        f"-Wl,-rpath,{folder}",
    )
    carried = carry([str(program)], [])
    assert str(folder / "libvalue.so") in guests(carried.files)
    assert carried.env == (("LD_LIBRARY_PATH", str(folder)),)


def test_library_that_is_missing(tmp_path: Path) -> None:
    library = compiled(tmp_path, "libgone.so", "int value(void) { return 3; }", "-shared", "-fPIC")
    source = "int value(void); int main(void) { return value(); }"
    program = compiled(tmp_path, "a", source, f"-L{tmp_path}", "-lgone")
    library.unlink()
    with pytest.raises(UserError, match=r"needs libraries .* libgone\.so"):
        carry([str(program)], [])


def test_script_comes_with_its_interpreter(tmp_path: Path) -> None:
    script = executable(tmp_path / "script", b"#!/bin/sh -e\necho\n")
    carried = carry([str(script)], [])
    assert {str(script), "/bin/sh", LOADER} <= guests(carried.files)
    assert carried.argv == (str(script),)


def test_script_by_env_comes_with_env_and_the_program(tmp_path: Path) -> None:
    script = executable(tmp_path / "script", b"#!/usr/bin/env -S A=1 gzip -d\n")
    found = guests(carry([str(script)], []).files)
    assert {str(script), "/usr/bin/env", str(path_of_command("gzip"))} <= found


def test_scripts_in_a_circle(tmp_path: Path) -> None:
    script = executable(tmp_path / "script", f"#!{tmp_path}/script\n".encode())
    with pytest.raises(UserError, match="whose interpreter is a script"):
        carry([str(script)], [])


def test_program_on_the_path(fake_program: FakeProgram) -> None:
    path = fake_program("mine", "#!/bin/sh\n")
    assert path_of_command("mine") == path


def test_relative_program_gets_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "mine", b"#!/bin/sh\n")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert path_of_command("../mine") == tmp_path / "mine"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("arm", elf_header(40, bits=32), r"another machine \(ARM, 32 bit\)"),
        ("aarch64", elf_header(183), r"another machine \(AARCH64, 64 bit\)"),
        ("i386", elf_header(3, bits=32), r"another machine \(386, 32 bit\)"),
        ("x32", elf_header(62, bits=32), r"another machine \(X86_64, 32 bit\)"),
        ("cut", b"\x7fELF\x02\x01", "damaged ELF"),
        ("text", b"echo hello\n", "neither a program for x86_64 nor a script"),
        ("dos", b"#!/bin/sh\r\necho\n", "its #! line ends with a carriage return"),
        ("empty", b"", "is empty: no program"),
        ("lost", b"#!/no/such/interpreter\n", "missing: no such program: /no/such/interpreter"),
        ("by-env", b"#!/usr/bin/env nonesuch\n", "missing: no program nonesuch on this host's"),
        ("none", b"#!\n", "neither a program for x86_64 nor a script"),
    ],
)
def test_what_cannot_run_in_a_guest(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = executable(tmp_path / name, content)
    with pytest.raises(UserError, match=said):
        carry([str(path)], [])


def test_missing_program() -> None:
    with pytest.raises(UserError, match="no program nonesuch-program on this host's PATH"):
        carry(["nonesuch-program"], [])
    with pytest.raises(UserError, match="no such program"):
        carry(["./nonesuch-program"], [])
    with pytest.raises(UserError, match="not a program: /usr"):
        carry(["/usr"], [])


def test_program_that_is_not_executable(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("#!/bin/sh\n")
    with pytest.raises(UserError, match="not executable") as raised:
        carry([str(tmp_path / "a")], [])
    assert "chmod +x" in raised.value.hint


def test_unknown_loader_is_never_run(tmp_path: Path) -> None:
    trap = executable(tmp_path / "trap", f"#!/bin/sh\ntouch {tmp_path}/sprung\n".encode())
    program = compiled(
        tmp_path, "a", "int main(void) { return 0; }", f"-Wl,--dynamic-linker={trap}"
    )
    with pytest.raises(UserError, match="unknown loader"):
        carry([str(program)], [])
    assert not (tmp_path / "sprung").exists()


def test_file_option_of_a_program_brings_its_libraries(tmp_path: Path) -> None:
    program = compiled(tmp_path, "a", "int main(void) { return 0; }", "-static")
    carried = carry([str(program)], parse_file_option(f"{path_of_command('ls')}:/opt/ls"))
    assert "/opt/ls" in guests(carried.files)
    assert LOADER in guests(carried.files)


def test_file_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "a:b"
    data.write_text("")
    when = data.stat().st_mtime_ns
    assert parse_file_option(f"{data}") == [JobFile(data, str(data), 0o644, when)]
    assert parse_file_option(f"{data}:/etc/x") == [JobFile(data, "/etc/x", 0o644, when)]
    monkeypatch.chdir(tmp_path)
    assert parse_file_option("a:b:/etc/x") == [JobFile(data, "/etc/x", 0o644, when)]


def test_file_option_with_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in/deep").mkdir(parents=True)
    executable(tmp_path / "in/deep/program", b"")
    (tmp_path / "in/data").write_text("")
    os.mkfifo(tmp_path / "in/pipe")
    found = [(one.host, one.guest, one.mode) for one in parse_file_option(f"{tmp_path}/in:/opt/")]
    assert found == [
        (tmp_path / "in/data", "/opt/data", 0o644),
        (tmp_path / "in/deep/program", "/opt/deep/program", 0o755),
    ]


@pytest.mark.parametrize("option", ["/none/such", "/none:/x", "/etc/passwd:/proc/x", "/dev/null"])
def test_bad_file_option(option: str) -> None:
    with pytest.raises(UserError):
        parse_file_option(option)


def test_loader_list_as_recorded() -> None:
    glibc = """\
\tlinux-vdso.so.1 (0x00007ffd5a5f2000)
\tlibz.so.1 => /lib/x86_64-linux-gnu/../nowhere/libz.so.1 (0x00007f2c5d2d1000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2c5cc1e000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f2c5d39d000)
"""
    assert list(map(str, parse_loader_list(glibc, LOADER))) == [
        LOADER,
        "/lib/nowhere/libz.so.1",
        "/lib/x86_64-linux-gnu/libc.so.6",
    ]
    musl = (
        "\t/lib/ld-musl-x86_64.so.1 (0x7f0b1a3c8000)\n\tlibc.so => ld-musl-x86_64.so.1 (0x7f0b)\n"
    )
    assert list(map(str, parse_loader_list(musl, "/lib/ld-musl-x86_64.so.1"))) == [
        "/lib/ld-musl-x86_64.so.1"
    ]


def test_variant_for_newer_cpus_is_replaced_by_the_plain_one(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_text("")
    said = f"\tlibx.so => {tmp_path}/glibc-hwcaps/x86-64-v3/libx.so (0x7f0b)\n"
    assert parse_loader_list(said, LOADER)[1] == tmp_path / "libx.so"


def linked_for(arch: str, folder: Path, *flags: str) -> str:
    """A program of that architecture, which does nothing."""
    (folder / "a.s").write_text(".globl _start\n_start: nop\n")
    for name, *words in (("as", "a.s", "-o", "a.o"), ("ld", *flags, "a.o", "-o", "a")):
        subprocess.run([*binutils_command(target(arch), name), *words], cwd=folder, check=True)
    return str(folder / "a")


FOREIGN = ("arm", "arm64", "riscv64")


@pytest.mark.parametrize("arch", FOREIGN)
def test_a_static_program_for_another_architecture(tmp_path: Path, arch: str) -> None:
    program = linked_for(arch, tmp_path)
    carried = carry([program], [], arch)
    assert guests(carried.files) == {program}
    with pytest.raises(UserError, match="a program for another machine") as raised:
        carry([program], [])
    dpkg = target(arch).dpkg
    assert raised.value.hint == (
        "the guest runs programs for x86_64: x86_64-linux-gnu-gcc makes them, or name a kernel for "
        f"it: deb:PACKAGE:{dpkg}"
    )


@pytest.mark.parametrize("arch", FOREIGN)
def test_what_another_architecture_s_guest_cannot_be_given(tmp_path: Path, arch: str) -> None:
    compiler = target(arch).compiler
    with pytest.raises(UserError, match="a program for another machine") as raised:
        carry(["ls"], [], arch)
    assert compiler in raised.value.hint
    program = linked_for(arch, tmp_path, "-pie", "--dynamic-linker", target(arch).loader)
    with pytest.raises(UserError, match=f"needs a loader and libraries of {arch}") as raised:
        carry([program], [], arch)
    assert raised.value.hint == f"link it statically: {compiler} -static"
