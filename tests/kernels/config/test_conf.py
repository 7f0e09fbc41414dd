# SPDX-License-Identifier: GPL-2.0-or-later
"""conf without make: the same answers, or make after all."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kdelta.host.command import Result
from kdelta.host.native import NativeProgram, build_program
from kdelta.kernels.config.conf import answers_library, fast_olddefconfig
from kdelta.spec.errors import LabError

# What stands for the tree's conf: it grants all, and says in which environment it ran.
CONF = """#!/bin/sh
[ "$1 $2 $3" = "-s --olddefconfig Kconfig" ] || exit 2
grep -q CONFIG_BROKEN .config && { echo "Kconfig:1: broken" >&2; exit 1; }
echo "CONFIG_RUN=\\"$FROM_MAKE\\"" >>.config
"""

ASKER = """
#include <stdio.h>
int main(int argc, char **argv)
{
    char line[100];
    FILE *pipe = argc > 1 ? popen(argv[1], "r") : NULL;
    while (pipe && fgets(line, sizeof line, pipe))
        fputs(line, stdout);
    return pipe ? pclose(pipe) : 1;
}
"""


class FakeMake:
    """Runs conf as kbuild does; `tells` is whether its Kconfig has macros that run commands."""

    def __init__(self, out: Path, *, tells: bool = True, says: str = "make") -> None:
        self.out = out
        self.tells = tells
        self.says = says
        self.targets: list[str] = []
        program = out / "scripts/kconfig/conf"
        program.parent.mkdir(parents=True)
        program.write_text(CONF)
        program.chmod(0o755)

    def __call__(self, words: Sequence[str]) -> Result:
        *variables, target = words
        self.targets.append(target)
        if target == "olddefconfig":
            with (self.out / ".config").open("a") as file:
                file.write(f'CONFIG_RUN="{self.says}"\n')
        elif self.tells:
            asking = Path(variables[0].removeprefix("KBUILD_KCONFIG=")).read_text()
            (answer,) = re.findall(r'env -0 >"(.*)"\)', asking)
            Path(answer).write_bytes(b"FROM_MAKE=make\0BASH_FUNC_x%%=()\0KBUILD_KCONFIG=x\0")
        return Result(tuple(words), 0, "", "")


def test_conf_is_used_from_the_second_on(tmp_path: Path) -> None:
    make = FakeMake(tmp_path)
    normalize = fast_olddefconfig(tmp_path, make)
    for number in range(3):
        granted = normalize({"CONFIG_A": str(number)})
        assert granted == {"CONFIG_A": str(number), "CONFIG_RUN": '"make"'}
    assert make.targets == ["olddefconfig", "listnewconfig"]


def test_make_is_used_where_conf_says_otherwise(tmp_path: Path) -> None:
    make = FakeMake(tmp_path, says="something else")
    normalize = fast_olddefconfig(tmp_path, make)
    assert [normalize({})["CONFIG_RUN"] for _ in range(2)] == ['"something else"'] * 2
    assert make.targets == ["olddefconfig", "listnewconfig", "olddefconfig"]


def test_make_is_used_for_a_tree_that_does_not_tell(tmp_path: Path) -> None:
    make = FakeMake(tmp_path, tells=False)
    normalize = fast_olddefconfig(tmp_path, make)
    for _ in range(2):
        normalize({})
    assert make.targets == ["olddefconfig", "listnewconfig", "olddefconfig"]


def test_tree_whose_configuration_fails(tmp_path: Path) -> None:
    normalize = fast_olddefconfig(tmp_path, FakeMake(tmp_path))
    normalize({})
    with pytest.raises(LabError, match="Kconfig:1: broken"):
        normalize({"CONFIG_BROKEN": "y"})


def test_a_tree_that_make_cannot_configure(tmp_path: Path) -> None:
    def make(words: Sequence[str]) -> Result:
        return Result(tuple(words), 2, "", "Kconfig:7: syntax error\n")

    with pytest.raises(LabError, match="make olddefconfig failed: syntax error"):
        fast_olddefconfig(tmp_path, make)({})


def test_answers_are_remembered(tmp_path: Path) -> None:
    (tmp_path / "asker.c").write_text(ASKER)
    asker = build_program(NativeProgram("asker", tmp_path, ("asker.c",)))
    answers = tmp_path / "answers"
    answers.mkdir()
    log = tmp_path / "log"
    ask = f"echo asked >>{log}; echo one; echo two; env | grep -c LD_PRELOAD"
    environment = {
        **os.environ,
        "LD_PRELOAD": str(answers_library(strict=True)),
        "KDELTA_ANSWERS": str(answers),
    }

    def asked(command: str) -> str:
        return subprocess.run(
            [asker, command], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert [asked(ask) for _ in range(3)] == ["one\ntwo\n0\n"] * 3
    assert log.read_text() == "asked\n"
    assert asked(f"echo three; #{ask}") == "three\n"
    assert len(list(answers.iterdir())) == 2
