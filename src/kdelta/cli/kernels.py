# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta build` and `kdelta kernels`: kernels without measuring them."""

import math
from typing import Annotated

import msgspec

from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.kernel_listing import built_text, differences_text, kernels_text
from kdelta.cli.output import emit
from kdelta.cli.progress import shown_progress
from kdelta.cli.upkeep import pruned_text
from kdelta.host.cache import GIB, Pruning
from kdelta.kernels.kbuild.built import built_kernels, find_built
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.packages.cached import cached_kernels
from kdelta.lab.configs import compare_configs
from kdelta.lab.steps import expect_kernels, obtained, refused_of
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument, option
from kdelta.spec.words import parse_kernel_words


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
