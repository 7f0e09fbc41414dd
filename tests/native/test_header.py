# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta.h: the marks that it makes, in the languages and modes in which users compile it."""

import subprocess
from pathlib import Path

import pytest

from kdelta.host.native import native_folder
from tests.native.real_code import TARGETS

from .classifying import classify, disassembled
from .disassembly import instructions, mark, marks

USER = """
#include "kdelta.h"
#include "kdelta.h"
void user(const char *name, const void *bytes, size_t size)
{
    kdelta_arm();
    kdelta_begin(name);
    kdelta_iter();
    kdelta_end();
    kdelta_join();
    kdelta_message(bytes, size);
}
"""


def compiled(folder: Path, *command: str, source: str = USER) -> Path:
    output = folder / "user.o"
    path = folder / ("user.cc" if command[0] == "g++" else "user.c")
    path.write_text(source)
    strict = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion")
    include = f"-I{native_folder() / 'include'}"
    subprocess.run([*command, *strict, include, "-c", path, "-o", output], check=True)
    return output


@pytest.mark.parametrize(
    "command",
    [
        ("gcc", "-std=c11", "-O0"),
        ("gcc", "-std=c11", "-O2"),
        ("gcc", "-std=c99", "-O3"),
        ("gcc", "-std=c11", "-Os", "-fPIC"),
        pytest.param(("g++", "-std=c++17", "-O2"), marks=pytest.mark.slow),
    ],
)
def test_all_marks_are_there(tmp_path: Path, command: tuple[str, ...]) -> None:
    found = set(marks(compiled(tmp_path, *command)))
    assert found == {"arm", "begin", "iter", "end", "join", "message", "byte"}


def test_marks_stand_in_the_order_of_the_calls(tmp_path: Path) -> None:
    source = USER.replace("    kdelta_message(bytes, size);", "    (void)bytes, (void)size;")
    found = marks(compiled(tmp_path, "gcc", "-O2", source=source))
    # What begin does before its mark may be a function of its own.
    assert [kind for kind in found if kind not in {"byte", "arm"}] == [
        "begin", "iter", "end", "join",
    ]  # fmt: skip


@pytest.mark.parametrize("optimise", ["-O0", "-O2", "-O3"])
def test_arm_ends_the_block(tmp_path: Path, optimise: str) -> None:
    """Even where the compiler unrolls the whole name, so that no other jump comes before BEGIN."""
    source = '#include "kdelta.h"\nvoid user(void) { kdelta_begin("ab"); kdelta_end(); }\n'
    text = instructions(compiled(tmp_path, "gcc", optimise, source=source))
    after = [text[i + 1] for i, line in enumerate(text) if mark(line) == "arm"]
    assert after
    assert all(line.startswith("jmp") for line in after)


@pytest.mark.parametrize(
    "command",
    [("gcc", "-std=gnu11"), pytest.param(("g++", "-std=c++17"), marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("more", [(), ("-DKDELTA_TIMED", "-Wno-pedantic")])
def test_name_of_the_region_around_a_program_is_refused(
    tmp_path: Path,
    command: tuple[str, ...],
    more: tuple[str, ...],
    capfd: pytest.CaptureFixture[str],
) -> None:
    source = '#include "kdelta.h"\nvoid user(void) { kdelta_begin("NAME"); kdelta_end(); }\n'
    compiled(tmp_path, *command, "-O1", *more, source=source.replace("NAME", "commands"))
    with pytest.raises(subprocess.CalledProcessError):
        compiled(tmp_path, *command, "-O1", *more, source=source.replace("NAME", "command"))
    assert "the region command is kdelta's own" in capfd.readouterr().err


def test_the_encoding_is_the_documented_one(tmp_path: Path) -> None:
    code = compiled(tmp_path, "gcc", "-O2").read_bytes()
    for kind in range(1, 7):
        assert bytes([0x0F, 0x1F, 0x80, kind, 0x00, 0x64, 0x4B]) in code
    assert bytes.fromhex("0fb68800 10644b") in code


def test_the_table_is_aligned_to_its_size(tmp_path: Path) -> None:
    source = USER + "int main(void) { user((char *)0, 0, 0); return 0; }\n"
    path = compiled(tmp_path, "gcc", "-O1", source=source)
    subprocess.run(["gcc", path, "-o", tmp_path / "user"], check=True)
    nm = subprocess.run(["nm", "-S", tmp_path / "user"], capture_output=True, text=True, check=True)
    (table,) = (line.split() for line in nm.stdout.splitlines() if line.endswith("kdelta_page"))
    assert int(table[0], 16) % 256 == 0
    assert int(table[1], 16) == 256


def test_other_architectures_get_nothing(tmp_path: Path) -> None:
    source = "#include <stdint.h>\n#undef __x86_64__\n" + USER
    assert marks(compiled(tmp_path, "gcc", "-O2", source=source)) == []


COMPILERS = {
    "arm": ("arm-linux-gnueabihf-gcc", "-marm"),
    "thumb": ("arm-linux-gnueabihf-gcc", "-mthumb"),
    "arm64": ("aarch64-linux-gnu-gcc",),
    "riscv64": ("riscv64-linux-gnu-gcc",),
}


@pytest.mark.parametrize(
    "optimise", ["-O2", *(pytest.param(one, marks=pytest.mark.slow) for one in ("-O0", "-Os"))]
)
@pytest.mark.parametrize("name", COMPILERS)
@pytest.mark.slow
def test_the_plugin_finds_all_marks_of_other_architectures(
    tmp_path: Path, name: str, optimise: str
) -> None:
    target = TARGETS[name]
    insns = disassembled(target, compiled(tmp_path, *COMPILERS[name], "-std=c11", optimise))
    found = classify(target, (insn.code for insn in insns))
    assert {facts.mark for facts in found} == {0, 1, 2, 3, 4, 5, 6}
    assert any(facts.argument for facts in found)
    # None of them does anything: no register is written, nothing but the byte's table is read.
    assert not any(facts.stores or facts.jumps for facts in found if facts.mark or facts.argument)


@pytest.mark.parametrize("name", COMPILERS)
@pytest.mark.slow
def test_arm_ends_the_block_on_other_architectures(tmp_path: Path, name: str) -> None:
    source = '#include "kdelta.h"\nvoid user(void) { kdelta_begin("ab"); kdelta_end(); }\n'
    target = TARGETS[name]
    path = compiled(tmp_path, *COMPILERS[name], "-O2", source=source)
    insns = disassembled(target, path, repeated=True)
    found = classify(target, (insn.code for insn in insns))
    after = [found[i + 1] for i, facts in enumerate(found) if facts.mark == 1]
    assert after
    assert all(facts.jumps for facts in after)
