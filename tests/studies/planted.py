# SPDX-License-Identifier: GPL-2.0-or-later
"""The fake tree as a repository with planted commits, and a lab that knows what each costs.

What a kernel costs is read from the files of its commit: open takes 30 for each lock(&held) in
kernel/core.c, fault 50 for each clear_pages in it, and both 3 for each function in kernel/lock.c
that nothing calls, as if its place in memory did it.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.paths import RegionPath
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.spec.kernel import GitSpec, parse_kernel_spec
from kdelta.spec.run import RunStatus
from kdelta.studies.search import measure as measuring
from kdelta.studies.search.measure import Bench, MeasuredKernel, SearchedRegion
from tests.kernels.git_trees import git
from tests.kernels.trees import fake_tree

EXECUTED = {"start", "start_kernel", "lock", "clear_pages"}
CORE, LOCK, OLD, PAGES = "kernel/core.c", "kernel/lock.c", "drivers/old.c", "mm/pages.c"

SLOWER = ("\tlock(&held);\n", "\tlock(&held);\n\tlock(&held);\n")
FASTER = ("\tclear_pages(2);\n", "")
BROKEN = ("void start_kernel(void)\n", "void start_kernel(void) nonsense\n")
NO_BOOT = ("\tlist_add(", "\t/* panic */ list_add(")


class Planted:
    """The repository, with what plants commits."""

    def __init__(self, folder: Path) -> None:
        self.folder = fake_tree(folder)
        git(self.folder, "init", "-q")
        self.commit("start")

    def commit(self, subject: str) -> str:
        """All that was changed, as a commit."""
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", subject)
        return self.name("HEAD")

    def change(self, subject: str, file: str, old: str = "", new: str = "") -> str:
        """A commit that replaces a text in a file, or adds one to its end."""
        path = self.folder / file
        text = path.read_text() if path.is_file() else ""
        assert old in text, subject
        path.write_text(text.replace(old, new, 1) if old else text + new)
        return self.commit(subject)

    def unrelated(self, number: int) -> str:
        """A commit to an object of which nothing is executed."""
        return self.change(
            f"old: function {number}", OLD, new=f"int old_{number}(void) {{ return 1; }}\n"
        )

    def placement(self, number: int) -> str:
        """A commit that adds what nothing calls to an executed object."""
        return self.change(
            f"lock: unused {number}",
            LOCK,
            new=f"int unused_{number};\nint unused_f{number}(void) {{ return {number}; }}\n",
        )

    def name(self, revision: str) -> str:
        """The hash of a revision."""
        return git(self.folder, "rev-parse", revision).strip()

    def read(self, commit: str, file: str) -> str:
        """A file of a commit."""
        return git(self.folder, "show", f"{commit}:{file}")


class FakeLab:
    """Stands for guests: counts the runs, and tells what is true."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, planted: Planted) -> None:
        self.planted = planted
        self.measured: list[str] = []
        lab = self

        async def measure(
            _: Bench, label: str, kernel: Kernel | NoKernel, **_options: Any
        ) -> MeasuredKernel:
            return lab.measure(label, kernel)

        monkeypatch.setattr(Bench, "measure", measure)
        monkeypatch.setattr(measuring, "executed_names", lambda *_: frozenset(EXECUTED))

    def measure(self, label: str, kernel: Kernel | NoKernel) -> MeasuredKernel:
        """What a kernel's runs come to."""
        if isinstance(kernel, NoKernel):
            return MeasuredKernel(label, kernel, (), {}, kernel.text, kernel.status)
        spec = parse_kernel_spec(kernel.spec)
        assert isinstance(spec, GitSpec)
        self.measured.append(spec.revision)
        core = self.planted.read(spec.revision, CORE)
        if "panic" in core:
            return MeasuredKernel(
                label, kernel, (), {}, "boot-failed: panic", RunStatus.BOOT_FAILED
            )
        unused = self.planted.read(spec.revision, LOCK).count("(void) { return")
        functions = {
            "open": {"lock": 30 * core.count("lock(&held)"), "start_kernel": 70 + 3 * unused},
            "fault": {
                "clear_pages": 50 * core.count("clear_pages(2)"),
                "start_kernel": 200 + 3 * unused,
            },
            "empty": {"start_kernel": 4},
        }
        nothing = exactly(0)
        return MeasuredKernel(
            label,
            kernel,
            (),
            {
                name: SearchedRegion("syscalls", RegionPath(exactly(cost), exactly(cost), nothing))
                for name, its in functions.items()
                for cost in [sum(its.values())]
            },
            parts={
                name: {function: exactly(cost) for function, cost in its.items()}
                for name, its in functions.items()
            },
        )


def exactly(value: int) -> Estimate:
    """A figure that all of three runs agree in."""
    return Estimate(Fraction(value), Fraction(value), Fraction(value), 3)
