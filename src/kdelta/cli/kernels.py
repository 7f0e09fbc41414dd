# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta build` and `kdelta kernels`: kernels without measuring them."""

import math
from collections.abc import Sequence
from typing import Annotated

import msgspec

from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.listing import lines_text
from kdelta.cli.output import emit
from kdelta.cli.progress import shown_progress
from kdelta.cli.upkeep import pruned_text
from kdelta.host.cache import GIB, Pruning
from kdelta.kernels.config.configure import few_items
from kdelta.kernels.config.kconfig import line_of
from kdelta.kernels.kbuild.built import BuiltKernel, built_kernels, find_built, load_built
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.cached import CachedKernel, cached_kernels
from kdelta.lab.configs import ConfigDifference, compare_configs
from kdelta.lab.steps import expect_kernels, obtained, refused_of
from kdelta.spec.errors import UserError
from kdelta.spec.identity import short_id
from kdelta.spec.option import Argument, option
from kdelta.spec.words import parse_kernel_words

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
    return f"    release {kernel.release}, {kernel.arch}, identity {short_id(kernel.identity)}"


def built_name(kernel: BuiltKernel) -> str:
    """A built kernel by the beginning of its key, and how it was asked for."""
    return f"{short_id(kernel.key)}  {kernel.spec}"


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
        lines.append(f"granted otherwise: {few_items(built.changed, _SHOWN)}")
    if built.derived:
        lines.append(
            f"follows from the compiler and other options: {few_items(built.derived, _SHOWN)}"
        )
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


def build(
    words: Annotated[
        list[str],
        Argument(metavar="KERNEL [+CHANGE...]...", help="What to build or fetch.", kernels=True),
    ],
) -> int:
    """Build kernels without measuring them.

    Prints of each where it is, what the lab had to add to its config, and why one could not be
    built. What is in the cache already is not built again.
    """
    with shown_progress() as progress:
        specs = parse_kernel_words(words)
        expect_kernels(progress, [str(spec) for spec in specs])
        refused = refused_of([str(spec) for spec in specs], progress)
        found = {
            spec: obtained(spec, progress)
            for spec in sorted(specs, key=lambda spec: str(spec) not in refused)
        }
    for spec in specs:
        emit(built_text(found[spec]))
    return RUNS_FAILED if any(isinstance(kernel, NoKernel) for kernel in found.values()) else 0


class KernelsOptions(msgspec.Struct, frozen=True):
    """What is printed of a kernel, or done about the cache."""

    config: Annotated[
        bool, option("--config", help="Print the kernel's .config, and nothing else.")
    ] = False
    prune_to: Annotated[
        float | None,
        option(
            "--prune",
            metavar="GIB",
            least=0,
            help="Keep the cache within GIB, as kdelta prune --cache does.",
        ),
    ] = None


_ALL: list[str] = []


def kernels(
    *,
    asked: KernelsOptions,
    names: Annotated[
        list[str],
        Argument(metavar="[KERNEL [KERNEL]]", help="Built kernels, by identity or key."),
    ] = _ALL,
) -> None:
    """List the kernels that are kept here, and how they came about.

    With the name of a built kernel: its config, and what was asked, added and changed. With two:
    how their configs differ, and which of the differences reach code that their runs executed.
    """
    prune_to = asked.prune_to
    if prune_to is not None:
        if not math.isfinite(prune_to):
            raise UserError(
                f"cannot use --prune {prune_to:g}: it is no number of gibibytes",
                "kdelta kernels --prune 20",
            )
        emit(pruned_text(Pruning(limit=int(prune_to * GIB))))
        return
    if not names:
        emit(kernels_text(cached_kernels(), built_kernels()))
        return
    if len(names) > 2:
        raise UserError("more than two kernels", "name one to look at, or two to compare")
    found = [find_built(name) for name in names]
    if len(found) == 2:
        emit(differences_text(compare_configs(found[0], found[1])))
    elif asked.config:
        emit((found[0].path / found[0].config).read_text())
    else:
        emit(built_text(found[0].kernel(found[0].spec)))
