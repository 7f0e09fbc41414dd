# SPDX-License-Identifier: GPL-2.0-or-later
"""C parts: all compile without a warning, are built once, and again when something changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kdelta.host import native
from kdelta.host.dirs import cache_dir
from kdelta.host.native import NativeProgram, build, build_program
from kdelta.spec.errors import LabError
from tests.conftest import FakeProgram, wait_for

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize("part", ["plugin", "probe", "agent"])
def test_part_compiles_without_a_warning(part: str) -> None:
    with build(part, strict=True).open("rb") as file:
        kind = ELFFile(file).header["e_type"]
    assert kind == ("ET_EXEC" if part == "agent" else "ET_DYN")


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
    log = Path(raised.value.hint.split()[-1])
    assert "'two' undeclared" in log.read_text()
    assert log.read_text().startswith("gcc ")
    assert not list(cache_dir("native").iterdir())


def test_link_error_names_the_symbol(program: NativeProgram) -> None:
    (program.folder / "main.c").write_text("int f(void); int main(void) { return f(); }\n")
    with pytest.raises(LabError, match="undefined reference to `f'"):
        build_program(program)


def test_missing_compiler(monkeypatch: pytest.MonkeyPatch, program: NativeProgram) -> None:
    native.compiler_identity.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match="gcc is missing") as raised:
        build_program(program)
    assert "apt-get install gcc" in raised.value.hint


def test_two_processes_compile_once(
    program: NativeProgram, tmp_path: Path, fake_program: FakeProgram
) -> None:
    """The first's compiler goes on only when the second has said that it waits."""
    log, waits = tmp_path / "calls", tmp_path / "waits"
    fake_program(
        "gcc",
        f"""#!/bin/sh
case "$*" in *-o*) ;; *) exec /usr/bin/gcc "$@";; esac
echo compile >> {log}
{wait_for(waits)}
exec /usr/bin/gcc "$@"
""",
    )
    code = f"""
import pathlib, sys
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
    assert log.read_text() == "compile\n"
    assert exit_code(Path(outputs[0].strip())) == 7
