# SPDX-License-Identifier: GPL-2.0-or-later
"""C parts: all compile without a warning, are built once, and again when something changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kdelta.host import gcc
from kdelta.host.dirs import cache_dir
from kdelta.host.emulator import NEWEST_API, OLDEST_API
from kdelta.host.native import NativeProgram, build_part, build_program
from kdelta.spec.errors import LabError
from tests.caches import forget_checks
from tests.conftest import FakeProgram, wait_for

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]


@pytest.mark.slow
@pytest.mark.parametrize("api", range(OLDEST_API, NEWEST_API + 1))
@pytest.mark.parametrize("part", ["plugin", "probe"])
def test_part_for_qemu_compiles_for_each_interface_without_a_warning(part: str, api: int) -> None:
    with build_part(part, strict=True, plugin_api=api).open("rb") as file:
        assert ELFFile(file).header["e_type"] == "ET_DYN"


@pytest.mark.slow
@pytest.mark.parametrize("api", [OLDEST_API - 1, NEWEST_API + 1])
def test_plugin_for_an_unknown_interface_does_not_compile(api: int) -> None:
    with pytest.raises(LabError, match="PLUGIN_API is to be the version"):
        build_part("plugin", plugin_api=api)


def test_agent_compiles_without_a_warning() -> None:
    with build_part("agent", strict=True).open("rb") as file:
        assert ELFFile(file).header["e_type"] == "ET_EXEC"


@pytest.fixture
def program(tmp_path: Path) -> NativeProgram:
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "value.h").write_text("#define VALUE 7\n")
    (folder / "main.c").write_text('#include "value.h"\nint main(void) { return VALUE; }\n')
    return NativeProgram("seven", folder, ("main.c",))


def exit_code(path: Path) -> int:
    return subprocess.run([path], check=False).returncode


def test_built_once(program: NativeProgram) -> None:
    said: list[str] = []
    first = build_program(program, said.append)
    assert build_program(program, said.append) == first
    assert said == ["compiling seven"]
    assert exit_code(first) == 7


def test_damaged_result_is_compiled_again(program: NativeProgram) -> None:
    said: list[str] = []
    built = build_program(program, said.append)
    content = built.read_bytes()
    built.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    forget_checks()
    assert build_program(program, said.append).read_bytes() == content
    assert said[1].startswith(f"{built.parent} is damaged: seven is not what was made; ")
    assert said[2:] == ["compiling seven"]


def test_changed_header_is_another_program(program: NativeProgram) -> None:
    first = build_program(program)
    (program.folder / "value.h").write_text("#define VALUE 8\n")
    second = build_program(program)
    assert (exit_code(first), exit_code(second)) == (7, 8)


def test_other_flags_are_another_program(program: NativeProgram) -> None:
    other = NativeProgram(program.name, program.folder, program.sources, ("-DX",))
    assert build_program(program) != build_program(other)


def test_result_does_not_tell_where_it_was_built(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two-which-is-longer"):
        folder, include = tmp_path / name / "sources", tmp_path / name / "include"
        folder.mkdir(parents=True)
        include.mkdir()
        (include / "file.h").write_text("static inline const char *f(void) { return __FILE__; }")
        (folder / "main.c").write_text(
            '#include <stdio.h>\n#include "file.h"\nint main(void) { puts(__FILE__); puts(f()); }\n'
        )
        path = build_program(NativeProgram("where", folder, ("main.c",), (), (include,)))
        contents.append(path.read_bytes())
        assert subprocess.check_output([path]) == b"main.c\ninclude/file.h\n"
        path.unlink()
    assert contents[0] == contents[1]


def test_compile_error_tells_the_first_and_where_the_rest_is(program: NativeProgram) -> None:
    (program.folder / "main.c").write_text("int main(void) { return one; }\nint x = two;\n")
    with pytest.raises(LabError, match="'one' undeclared") as raised:
        build_program(program)
    log_file = Path(raised.value.hint.split()[-1])
    assert "'two' undeclared" in log_file.read_text()
    assert log_file.read_text().startswith("gcc ")
    assert not list(cache_dir("native").iterdir())


def test_link_error_names_the_symbol(program: NativeProgram) -> None:
    (program.folder / "main.c").write_text("int f(void); int main(void) { return f(); }\n")
    with pytest.raises(LabError, match="undefined reference to `f'"):
        build_program(program)


def test_missing_compiler(monkeypatch: pytest.MonkeyPatch, program: NativeProgram) -> None:
    gcc.compiler_identity.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match="gcc is missing") as raised:
        build_program(program)
    assert "Debian's package gcc" in raised.value.hint  # apt-get is not on this PATH either


def test_two_processes_compile_once(
    program: NativeProgram, tmp_path: Path, fake_program: FakeProgram
) -> None:
    """The first's compiler goes on only when the second has said that it waits."""
    log_file, waits = tmp_path / "calls", tmp_path / "waits"
    fake_program(
        "gcc",
        f"""#!/bin/sh
case "$*" in *-o*) ;; *) exec /usr/bin/gcc "$@";; esac
echo compile >> {log_file}
{wait_for(waits)}
exec /usr/bin/gcc "$@"
""",
    )
    code = f"""
import pathlib, sys
from kdelta.host.emulator import NEWEST_API, OLDEST_API
from kdelta.host.native import NativeProgram, build_program
def talk(line):
    if line.startswith("waiting"):
        pathlib.Path({str(waits)!r}).touch()
folder = pathlib.Path({str(program.folder)!r})
print(build_program(NativeProgram("seven", folder, ("main.c",)), talk))
"""
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        for _ in range(2)
    ]
    outputs = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert outputs[0] == outputs[1]
    assert log_file.read_text() == "compile\n"
    assert exit_code(Path(outputs[0].strip())) == 7
