# SPDX-License-Identifier: GPL-2.0-or-later
"""The pinned compiler: its programs run, and have the same bytes wherever they are compiled."""

import subprocess
from pathlib import Path

import pytest

from kdelta.guests.image import base_image
from kdelta.host.dirs import cache_dir
from kdelta.host.emulator import PIN, find_compiler
from kdelta.host.gcc import Compiler
from kdelta.host.native import PLUGIN_FLAGS, STATIC_FLAGS, NativeProgram, build_program
from kdelta.host.target import target, targets
from kdelta.spec.errors import LabError

pytestmark = [pytest.mark.network, pytest.mark.usefixtures("own_cache")]
SUM = """\
#include <pthread.h>
#include <stdio.h>
#include "other.h"
static void *add(void *of) { *(int *)of += other(); return NULL; }
int main(void)
{
    pthread_t thread;
    int sum = 1;
    pthread_create(&thread, NULL, add, &sum);
    pthread_join(thread, NULL);
    printf("%d %s\\n", sum, __FILE__);
    return 0;
}
"""


def program(folder: Path, flags: tuple[str, ...], by: Compiler) -> NativeProgram:
    folder.mkdir()
    (folder / "main.c").write_text(SUM)
    (folder / "other.c").write_text('#include "other.h"\nint other(void) { return FORTY_ONE; }\n')
    (folder / "other.h").write_text("int other(void);\n")
    flags = (*flags, "-pthread", "-DFORTY_ONE=41")
    return NativeProgram("sum", folder, ("main.c", "other.c"), flags, by=by)


def pinned_compiler(arch: str = "x86_64") -> Compiler:
    found = find_compiler(target(arch), PIN)
    assert found.pin
    return found


@pytest.mark.parametrize("flags", [STATIC_FLAGS, ()])
@pytest.mark.slow
def test_program_of_several_sources_runs(tmp_path: Path, flags: tuple[str, ...]) -> None:
    built = build_program(program(tmp_path / "sources", flags, pinned_compiler()))
    if flags:  # the host may have an older C library than a dynamic program wants
        assert subprocess.run([built], capture_output=True, check=True).stdout == b"42 main.c\n"
    assert built.read_bytes().startswith(b"\x7fELF")


@pytest.mark.slow
def test_library_has_what_it_exports(tmp_path: Path) -> None:
    built = build_program(program(tmp_path / "sources", PLUGIN_FLAGS[:2], pinned_compiler()))
    said = subprocess.run(["nm", "-D", built], capture_output=True, text=True, check=True).stdout
    assert " T other\n" in said


@pytest.mark.parametrize(
    "arch",
    [
        "x86_64",
        *(pytest.param(one, marks=pytest.mark.slow) for one in targets() if one != "x86_64"),
    ],
)
@pytest.mark.slow
def test_image_has_the_same_bytes_in_another_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str
) -> None:
    pins, images = cache_dir("qemu"), []
    for name in ("one", "another-which-is-longer"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "qemu").symlink_to(pins)
        monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / name))
        images.append(base_image(pinned_compiler(arch)))
    assert images[0].path != images[1].path
    assert images[0].path.read_bytes() == images[1].path.read_bytes()


def test_error_names_the_first_line(tmp_path: Path) -> None:
    wrong = program(tmp_path / "sources", STATIC_FLAGS, pinned_compiler())
    (tmp_path / "sources/other.c").write_text("int other(void) { return two; }\n")
    words = r"compiling sum failed: other\.c:1:26: error: .*two"
    with pytest.raises(LabError, match=words) as error:
        build_program(wrong)
    assert "-nostdinc" in Path(error.value.hint.rpartition(" ")[2]).read_text()


def test_program_of_the_host_is_another_one(tmp_path: Path) -> None:
    by_pin, by_host = pinned_compiler(), Compiler("x86_64")
    assert by_pin.title == f"gcc 14.2.0, pin {by_pin.identity[0]}"
    assert by_host.title.startswith("gcc ")
    programs = [program(tmp_path / by.identity[0], STATIC_FLAGS, by) for by in (by_pin, by_host)]
    assert build_program(programs[0]) != build_program(programs[1])
