# SPDX-License-Identifier: GPL-2.0-or-later
"""One output folder of a source tree, and its make: configuring it and building in it."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import Result, run
from kdelta.host.files import make_folder, os_failure
from kdelta.host.stream import run_logged
from kdelta.kernels.failure import NO_SPACE, first_error
from kdelta.kernels.toolchain import Toolchain, build_environment

Talk = Callable[[str], None]

OUT = "out-"
NICENESS = "5"
_SAY_EVERY_SECONDS = 30.0
_COMPILED = ("CC", "AS", "LD", "HOSTCC", "CC [M]")


class Kbuild(msgspec.Struct, frozen=True):
    """A source tree that is checked out, a folder for its output, and what it is built with.

    `root` holds both: what ccache takes paths relative to. `purpose` tells output folders apart.
    """

    root: Path
    tree: Path
    toolchain: Toolchain
    jobs: int
    purpose: str = OUT

    @property
    def out(self) -> Path:
        """The output folder: one for all configs, so that only what differs is compiled."""
        return self.root / f"{self.purpose}{self.toolchain.flavour}"

    def argv(self, targets: Sequence[str]) -> list[str]:
        """make for these targets (or KEY=VALUE words), in the output folder."""
        words = [f"O={self.out}", *self.toolchain.words(), *targets]
        return ["nice", "-n", NICENESS, "make", f"-j{self.jobs}", *words]

    def configure(self, targets: Sequence[str]) -> Result:
        """Runs configuration targets, which take a second."""
        make_folder(self.out)
        return run(self.argv(["-s", *targets]), cwd=self.tree, env=build_environment(self.root))

    def make(self, targets: Sequence[str], log: Path, talk: Talk) -> str | None:
        """Builds; None, or what went wrong first. `log` has all that was said.

        LabError for a full disk, or when make cannot be started.
        """
        make_folder(self.out)
        counter = _Counter(talk)
        code = run_logged(
            self.argv(targets),
            log,
            cwd=self.tree,
            env=build_environment(self.root),
            line=counter.line,
        )
        if code == 0:
            return None
        if any(NO_SPACE in line for line in counter.lines):
            raise os_failure(OSError(28, os.strerror(28)), "building in", self.out)
        return first_error(counter.lines)


class _Counter:
    """Keeps what may explain a failure, and says now and then how far the build is."""

    def __init__(self, talk: Talk) -> None:
        self.lines: list[str] = []
        self._talk = talk
        self._compiled = 0
        self._said = time.monotonic()

    def line(self, text: str) -> None:
        words = text.split()
        if text.startswith("  ") and words and words[0] in _COMPILED:
            self._compiled += 1
            now = time.monotonic()
            if now - self._said > _SAY_EVERY_SECONDS:
                self._said = now
                self._talk(f"  {self._compiled} files compiled, now {words[-1]}")
        else:
            self.lines.append(text)
