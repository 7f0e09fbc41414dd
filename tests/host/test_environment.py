# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user's shell has set reaches no program whose output would be another one by it."""

import os
import subprocess
from pathlib import Path

import pytest

from kdelta.host.command import run_program
from kdelta.host.dirs import cache_dir
from kdelta.host.environment import FIXED, PASSES, environ_with
from kdelta.host.native import STATIC_FLAGS, NativeProgram, build_program
from kdelta.kernels.kbuild.kbuild import Kbuild
from kdelta.kernels.kbuild.toolchain import toolchain
from kdelta.kernels.sources.git_config import plain_environment

COMPILERS = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH")
OTHERS = (
    *(
        "GCC_EXEC_PREFIX",
        "GNUMAKEFLAGS",
        "MAKEFLAGS",
        "KCFLAGS",
        "KBUILD_EXTRA_SYMBOLS",
        "TAR_OPTIONS",
    ),
    *("KBUILD_CFLAGS", "KCONFIG_SEED", "SOURCE_DATE_EPOCH", "LD_LIBRARY_PATH", "LD_RUN_PATH"),
    *("CCACHE_DISABLE", "PERL5OPT", "PYTHONPATH", "XZ_OPT", "GIT_DIR", "GLIBC_TUNABLES"),
)


@pytest.fixture
def program(tmp_path: Path) -> NativeProgram:
    (tmp_path / "main.c").write_text(
        "#include <unistd.h>\nint main(void) { return getpid() < 2; }\n"
    )
    return NativeProgram("one", tmp_path, ("main.c",), STATIC_FLAGS)


def set_all(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Sets what compilers and others read; a compiler that finds the folder makes another program,
    a linker none.
    """
    folder.mkdir()
    (folder / "unistd.h").write_text("#include_next <unistd.h>\n#define getpid() (getpid(), 0)\n")
    (folder / "crt1.o").write_text("no object")
    for name in (*COMPILERS, *OTHERS):
        monkeypatch.setenv(name, str(folder))


def test_program_gets_what_is_listed_and_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_all(monkeypatch, tmp_path / "inc")
    printed = run_program(["env"], env={"OWN": "x"}).stdout.splitlines()
    named = {line.partition("=")[0] for line in printed} - {"PWD"}  # a shell may stand before it
    assert {"PATH", "HOME", "OWN", *FIXED} <= named <= {*PASSES, *FIXED, "OWN"}
    assert "LC_ALL=C" in printed


def test_two_users_have_the_same_program(
    program: NativeProgram, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = []
    for user in ("one", "another"):
        monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / user))
        made.append(build_program(program))
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        set_all(monkeypatch, tmp_path / f"inc-{user}")
    assert made[0].parent.name == made[1].parent.name
    assert made[0].read_bytes() == made[1].read_bytes()


def test_line_of_a_build_works_in_the_shell_of_any_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_all(monkeypatch, tmp_path / "inc")
    words = Kbuild(tmp_path, tmp_path, toolchain({}), 1).argv([])
    before_make = words[: words.index("nice")]
    users = {**os.environ, "MAKEFLAGS": "-k"}
    printed = subprocess.run(
        [*before_make, "env"], env=users, capture_output=True, text=True, check=True
    )
    named = {line.partition("=")[0] for line in printed.stdout.splitlines()}
    assert not named.intersection((*COMPILERS, *OTHERS))
    assert f"CCACHE_DIR={cache_dir('ccache')}" in printed.stdout


def test_git_knows_where_its_users_settings_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/somewhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    assert plain_environment() == {**environ_with(), "GIT_TERMINAL_PROMPT": "0"}
    assert plain_environment()["XDG_CONFIG_HOME"] == "/somewhere"
