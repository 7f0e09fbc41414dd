# SPDX-License-Identifier: GPL-2.0-or-later
"""The fake tree as a repository with planted commits, and a lab that knows what each costs.

What a kernel costs is read from the files of its commit: open takes 30 for each lock(&held) in
kernel/core.c, fault 50 for each clear_pages in it, and both 3 for each function in kernel/lock.c
that nothing calls, as if its place in memory did it.
"""

import functools
from fractions import Fraction
from pathlib import Path

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.estimate import Estimate
from kdelta.kernels.model import Kernel
from kdelta.spec.kernel import GitSpec, parse_kernel_spec
from kdelta.store.store import Store
from tests.kernels.git_trees import git
from tests.kernels.trees import fake_tree
from tests.studies.search_lab import SearchLab, counts_of

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
        return _file(self.folder, commit, file)


@functools.cache
def _file(folder: Path, commit: str, file: str) -> str:
    return git(folder, "show", f"{commit}:{file}")


class PlantedLab(SearchLab):
    """Kernels that execute what their commits say."""

    def __init__(self, planted: Planted, store: Store | None = None) -> None:
        super().__init__(store)
        self.planted = planted

    @property
    def measured(self) -> list[str]:
        """Return the commits whose kernels were run."""
        return [_revision(one.kernel) for one in self.whole]

    def counts(self, kernel: Kernel, _index: int) -> RunCounts | None:
        """Return what the files of the kernel's commit come to."""
        commit = _revision(kernel)
        core = self.planted.read(commit, CORE)
        if "panic" in core:
            return None
        unused = self.planted.read(commit, LOCK).count("(void) { return")
        return counts_of(
            {
                "open": {"lock": 30 * core.count("lock(&held)"), "start_kernel": 70 + 3 * unused},
                "fault": {
                    "clear_pages": 50 * core.count("clear_pages(2)"),
                    "start_kernel": 200 + 3 * unused,
                },
                "empty": {"start_kernel": 4},
            }
        )


def _revision(kernel: Kernel) -> str:
    spec = parse_kernel_spec(kernel.spec)
    assert isinstance(spec, GitSpec)
    return spec.revision


def exactly(value: int) -> Estimate:
    """A figure that all of three runs agree in."""
    return Estimate(Fraction(value), Fraction(value), Fraction(value), 3)
