# SPDX-License-Identifier: GPL-2.0-or-later
"""Many configs of one tree, one after another: the tree's conf, started without make, with what the
compiler and other tools answered it remembered. Five times as fast as olddefconfig by make.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdelta.host.command import Log, Result, quiet, run_program
from kdelta.host.files import lab_errors, make_folder, remove, write_atomic
from kdelta.host.native import PLUGIN_FLAGS, NativeProgram, build_program, native_folder
from kdelta.kernels.config.configure import Make, olddefconfig
from kdelta.kernels.config.kconfig import Config, Normalize

_PROGRAM = "scripts/kconfig/conf"
# The environment that kbuild gives conf, told by conf itself: kconfig's macros can run commands
# since Linux 4.18. conf writes nothing for this target.
_ASKING = 'kdelta := $(shell,env -0 >"{file}")\nconfig KDELTA\n\tbool\n'


def fast_olddefconfig(out: Path, make: Make, log: Log = quiet) -> Normalize:
    """What the tree makes of a config, as olddefconfig() in the same output folder would say it,
    sooner from the second on. The first is asked in both ways; where they differ, or the tree is
    too old, make is used throughout. LabError when the tree's configuration fails.
    """
    by_make = olddefconfig(out, make)
    chosen: list[Normalize] = []

    def normalize(config: Mapping[str, str]) -> Config:
        if chosen:
            return chosen[0](config)
        granted = by_make(config)
        quick = _direct(out, make, log)
        chosen.append(quick if quick is not None and quick(config) == granted else by_make)
        return granted

    return normalize


def _direct(out: Path, make: Make, log: Log) -> Normalize | None:
    environment = _environment(out, make)
    if environment is None or not (out / _PROGRAM).is_file():
        return None
    answers = out / ".kdelta-answers"
    # A compiler may have been updated since.
    remove(answers)
    make_folder(answers)
    environment |= {"LD_PRELOAD": str(answers_library(log)), "KDELTA_ANSWERS": str(answers)}

    def conf(_targets: Sequence[str]) -> Result:
        result = run_program(
            [out / _PROGRAM, "-s", "--olddefconfig", "Kconfig"], cwd=out, env=environment
        )
        return result.or_raise("the tree's configuration failed", lines=5)

    return olddefconfig(out, conf)


def _environment(out: Path, make: Make) -> dict[str, str] | None:
    asking, answer = out / ".kdelta-asking", out / ".kdelta-environment"
    remove(answer)
    write_atomic(asking, _ASKING.format(file=answer).encode())
    make([f"KBUILD_KCONFIG={asking}", "listnewconfig"])
    if not answer.is_file():
        return None
    with lab_errors("reading", answer):
        lines = answer.read_text(encoding="utf-8", errors="replace").split("\0")
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    # What bash exports as functions has names that env does not take.
    return {
        name: value
        for name, value in found.items()
        if name != "KBUILD_KCONFIG" and re.fullmatch(r"\w+", name)
    }


def answers_library(log: Log = quiet, *, strict: bool = False) -> Path:
    """The library that remembers answers, compiled unless the cache has it."""
    flags = (*PLUGIN_FLAGS, "-Wl,--no-as-needed,-ldl")
    program = NativeProgram("answers", native_folder() / "answers", ("answers.c",), flags)
    return build_program(program, log, strict=strict)
