# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that stand for changes of all kernels that a command names."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from kdelta.spec.change import ALLOW_UNKNOWN, MOST_FUZZ, FuzzChange
from kdelta.spec.words import with_change

AllowUnknown = Annotated[
    bool,
    typer.Option("--allow-unknown", help="Leave out options that a tree does not have."),
]
Fuzz = Annotated[
    int | None,
    typer.Option(
        "--fuzz",
        metavar="N",
        min=0,
        max=MOST_FUZZ,
        help="Apply patches with N lines of context less, as patch -F.",
    ),
]
CHANGE_OPTIONS: Mapping[str, tuple[Any, object]] = {
    "allow_unknown": (AllowUnknown, False),
    "fuzz": (Fuzz, None),
}
"""By the name of their parameter: the annotation, and the default."""


def changed_words(
    words: Sequence[str], *, allow_unknown: bool, fuzz: int | None, of_one_tree: bool = False
) -> list[str]:
    """The words of a command line with what these options stand for: for each kernel that has
    changes, or for the tree that all changes are of.
    """
    asked = [f"+{ALLOW_UNKNOWN}"] if allow_unknown else []
    if fuzz is not None:
        asked.append(str(FuzzChange(fuzz)))
    found = list(words)
    for change in asked:
        found = [*found, change] if of_one_tree else with_change(found, change)
    return found
