# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta kernels` and `kdelta build` print."""

from collections.abc import Sequence

from kdelta.cli.listing import lines_text
from kdelta.kernels.config.configure import some
from kdelta.kernels.config.kconfig import line_of
from kdelta.kernels.kbuild.built import BuiltKernel, load_built
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.cached import CachedKernel
from kdelta.lab.configs import ConfigDifference
from kdelta.spec.identity import short

_SHOWN = 12


def kernels_text(fetched: Sequence[CachedKernel], built: Sequence[BuiltKernel]) -> str:
    """Some lines for each kernel that is there already."""
    if not fetched and not built:
        return "no kernels here yet: naming one in a command fetches or builds it\n"
    lines: list[str] = []
    for one in fetched:
        lines += [one.text, _release(one)]
    for kernel in built:
        lines += [built_name(kernel), f"{_release(kernel)}, built in {kernel.seconds:.0f} s"]
    return lines_text(lines)


def _release(kernel: CachedKernel | BuiltKernel | Kernel) -> str:
    return f"    release {kernel.release}, {kernel.arch}, identity {short(kernel.identity)}"


def built_name(kernel: BuiltKernel) -> str:
    """A built kernel by the beginning of its key, and how it was asked for."""
    return f"{short(kernel.key)}  {kernel.spec}"


def built_text(kernel: Kernel | NoKernel) -> str:
    """What became of a kernel spec: where the kernel is and how its config came about."""
    if isinstance(kernel, NoKernel):
        return lines_text([kernel.spec, *(f"    {line}" for line in kernel.text.splitlines())])
    lines = [kernel.spec, _release(kernel), f"    {kernel.image_format} {kernel.image}"]
    built = load_built(kernel.built) if kernel.built else None
    if built is not None:
        lines += [f"    {line}" for line in _history(built)]
    return lines_text(lines)


def _history(built: BuiltKernel) -> list[str]:
    lines = [
        f"key {built.key[:12]}, tree {built.tree[:12]} of {built.source}",
        f"built in {built.seconds:.0f} s by {', '.join(built.versions)}",
        f"config from {built.base}",
    ]
    lines += built.given
    if built.linked is not None:
        lines += built.linked.lines
    if built.asked:
        lines.append("asked: " + ", ".join(line_of(*one) for one in built.asked.items()))
    if built.lab:
        lines.append("set for the lab: " + ", ".join(str(flip) for flip in built.lab))
    if built.changed:
        lines.append(f"granted otherwise: {some(built.changed, _SHOWN)}")
    if built.derived:
        lines.append(f"follows from the compiler and other options: {some(built.derived, _SHOWN)}")
    if built.unknown:
        lines.append(f"not in this tree, and left out: {', '.join(built.unknown)}")
    if built.idle:
        lines.append(f"changed nothing: {', '.join(built.idle)}")
    if built.missing:
        lines.append("the lab misses: " + ", ".join(one.option for one in built.missing))
    if built.modules_left:
        lines.append(
            f"{built.modules_left} options are modules and were not built; +mod2yesconfig or "
            "CONFIG_X=y builds them in"
        )
    return lines


def differences_text(found: ConfigDifference) -> str:
    """How two kernels' configs differ, and which of the differences reach executed code."""
    lines = [built_name(one) for one in found.kernels]
    if not found.flips:
        return lines_text([*lines, "", "the configs are equal"])
    lines += ["", f"{len(found.flips)} options differ; {found.known}"]
    width = max(len(str(flip)) for flip in found.flips)
    lines += [
        f"    {flip!s:<{width}}  {found.reach.get(flip.option) or ''}".rstrip()
        for flip in found.flips
    ]
    return lines_text(lines)
