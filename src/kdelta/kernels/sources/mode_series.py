# SPDX-License-Identifier: GPL-2.0-or-later
"""The change +kernel-mode: which of the package's patches a tree gets, and its options.

A series is a folder kernel_mode/VERSION.PATCHLEVEL. A tree of another version gets the nearest one,
which applies whole or not at all.
"""

import re
from importlib import resources
from pathlib import Path

import msgspec

from kdelta.kernels.arches import kernel_arch
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.spec.errors import LabError, UserError

ARCH = "x86_64"
FRAGMENT_NAME = "+kernel-mode"
"""What the fragment is called where the source of an option is told."""

_MAKEFILE_LINE = re.compile(r"^(VERSION|PATCHLEVEL)[ \t]*=[ \t]*(\d+)[ \t]*$", re.MULTILINE)

Version = tuple[int, int]


class ModeSeries(msgspec.Struct, frozen=True):
    """Patches in their order, and the version of the kernel that they were made for."""

    version: Version
    files: tuple[Path, ...]

    def failed(self, failure: PatchFailure, makefile: str | None) -> PatchFailure:
        """That failure, if it is of one of these patches, with what it means to the user."""
        if failure.patch not in (file.name for file in self.files):
            return failure
        detail = failure.detail
        found = version_of(makefile or "")
        if found is not None and found != self.version:
            made_for, this = (".".join(map(str, version)) for version in (self.version, found))
            detail += f"; the patches are for Linux {made_for}, this is {this}"
        return PatchFailure(f"{FRAGMENT_NAME}: {failure.patch}", detail)


def kernel_mode_series(makefile: str | None) -> ModeSeries:
    """The series for a tree with that Makefile (its text): that of its version, else the newest
    before it, else the oldest. LabError where the package has no patches.
    """
    there = sorted(
        (version, path)
        for path in _folder().glob("*.*")
        if path.is_dir() and (version := _folder_version(path.name)) is not None
    )
    if not there:
        raise LabError("the patches of +kernel-mode are not there", "install kdelta again")
    found = version_of(makefile or "")
    before = [one for one in there if found is None or one[0] <= found]
    version, path = before[-1] if before else there[0]
    return ModeSeries(version, tuple(sorted(path.glob("*.patch"))))


def kernel_mode_fragment() -> str:
    """The options that a kernel with kernel mode is built with."""
    return (_folder() / "kernel-mode.config").read_text(encoding="utf-8")


def must_have_kernel_mode(arch: str) -> None:
    """UserError for a kernel of an architecture (kbuild's or a machine's name) without it."""
    if kernel_arch(arch).machine != ARCH:
        raise UserError(
            f"+kernel-mode on a kernel for {arch}", "programs run in kernel mode on x86-64 only"
        )


def version_of(makefile: str) -> Version | None:
    """VERSION and PATCHLEVEL of a kernel's topmost Makefile; None if it has them not."""
    found = {name: int(value) for name, value in reversed(_MAKEFILE_LINE.findall(makefile))}
    return None if len(found) != 2 else (found["VERSION"], found["PATCHLEVEL"])


def _folder() -> Path:
    return Path(str(resources.files(__package__) / "kernel_mode"))


def _folder_version(name: str) -> Version | None:
    match = re.fullmatch(r"(\d+)\.(\d+)", name)
    return (int(match[1]), int(match[2])) if match else None
