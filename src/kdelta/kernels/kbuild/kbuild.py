# SPDX-License-Identifier: GPL-2.0-or-later
"""One output folder of a source tree, and its make: configuring it and building in it."""

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import Log, Result, run_program
from kdelta.host.files import lab_errors, make_folder
from kdelta.host.stream import run_logged
from kdelta.kernels.kbuild.failure import first_error, lab_failure
from kdelta.kernels.kbuild.toolchain import Toolchain, build_environment

OUT = "out-"
UNFINISHED = ".kdelta-unfinished"
"""A file in an output folder: make is at work there, or was killed when it was."""

_SAY_EVERY_SECONDS = 10.0
_COMPILED = ("CC", "AS", "LD", "HOSTCC", "CC [M]")


class Kbuild(msgspec.Struct, frozen=True):
    """A source tree that is checked out, a folder for its output, and what it is built with.

    `root` holds both: what ccache takes paths relative to. `purpose` distinguishes output folders.
    `link` are KEY=VALUE words about how vmlinux is linked.
    """

    root: Path
    tree: Path
    toolchain: Toolchain
    jobs: int
    purpose: str = OUT
    link: tuple[str, ...] = ()

    @property
    def out(self) -> Path:
        """The output folder: one for all configs, so that only what differs is compiled."""
        return self.root / f"{self.purpose}{self.toolchain.flavour}"

    def argv(self, targets: Sequence[str]) -> list[str]:
        """make for these targets (or KEY=VALUE words), in the output folder: all that a shell needs
        to do the same.
        """
        settings = build_environment(self.root)
        env = ["env", "-i", *(f"{name}={value}" for name, value in settings.items())]
        words = [f"O={self.out}", *self.toolchain.words(self.tree), *self.link, *targets]
        return [*env, "nice", "-n", "5", "make", f"-j{self.jobs}", *words]

    def configure(self, targets: Sequence[str]) -> Result:
        """Runs configuration targets, which take a second. LabError as below."""
        out = self._enter()
        done = run_program(self.argv(["-s", *targets]), cwd=self.tree)
        lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
        if not done.ok and (lacking := lab_failure(lines, out)) is not None:
            raise lacking
        return done

    def make(self, targets: Sequence[str], log_file: Path, log: Log) -> str | None:
        """Builds; None, or what went wrong first. `log` then has all that was printed, and says how
        far it was when the build is ended.

        LabError for a full disk, or when a program or header that it needs is missing.
        """
        log_file.unlink(missing_ok=True)
        unfinished = self._enter() / UNFINISHED
        if unfinished.is_file():
            _remove_since(unfinished, self.out)
        counter = _Counter(log)
        failed = run_logged(
            self.argv(targets), log_file, cwd=self.tree, line=counter.line, unfinished=unfinished
        )
        if failed and (lacking := lab_failure(counter.lines, self.out)) is not None:
            raise lacking
        return first_error(counter.lines, self.tree) if failed else None

    def _enter(self) -> Path:
        """The output folder, which is there from now on, and in use."""
        make_folder(self.out)
        with lab_errors("using", self.out):
            os.utime(self.out)
            os.utime(self.root)
        return self.out


def _remove_since(unfinished: Path, out: Path) -> None:
    """Removes what a make that was killed may have half written: it would take it for whole, since
    the .cmd file next to it may be that of an earlier build. ccache still has what was whole.
    """
    with lab_errors("clearing", out):
        since = unfinished.stat().st_mtime_ns
        for path in list(out.rglob("*")):
            first = path.relative_to(out).parts[0]
            # Without include/config make would not see which options have changed.
            is_kept = first == "include" or first.startswith(".") or path.is_dir()
            if not is_kept and path.lstat().st_mtime_ns >= since:
                path.unlink()
        unfinished.unlink()


class _Counter:
    """Keeps what may explain a failure, and says now and then how far the build is."""

    def __init__(self, log: Log) -> None:
        self.lines: list[str] = []
        self._log = log
        self._compiled = 0
        self._said = time.monotonic()

    def line(self, text: str) -> None:
        words = text.split()
        if text.startswith("  ") and words and words[0] in _COMPILED:
            self._compiled += 1
            now = time.monotonic()
            if now - self._said > _SAY_EVERY_SECONDS:
                self._said = now
                self._log(f"  {self._compiled} files compiled, now {words[-1]}")
        else:
            self.lines.append(text)


def install_modules(kbuild: Kbuild, folder: Path, release: str) -> str | None:
    """Put the modules that were built below lib/modules; None if there are none."""
    order = kbuild.out / "modules.order"
    names = order.read_text().split() if order.is_file() else []
    objects = (kbuild.out / f"{name.removesuffix('.o').removesuffix('.ko')}.ko" for name in names)
    found = [path for path in objects if path.is_file()]
    if not found:
        return None
    target = folder / "lib/modules" / release
    with lab_errors("copying modules to", target):
        for path in found:
            to = target / "kernel" / path.relative_to(kbuild.out)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
        for name in ("modules.builtin", "modules.order"):
            if (kbuild.out / name).is_file():
                shutil.copyfile(kbuild.out / name, target / name)
    return str(target.relative_to(folder))
