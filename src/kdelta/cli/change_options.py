# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that stand for changes of all kernels that a command names."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from kdelta.spec.change import ALLOW_UNKNOWN, MOST_FUZZ, FuzzChange
from kdelta.spec.option import option
from kdelta.spec.words import with_change


class ChangeOptions(msgspec.Struct, frozen=True):
    """Changes of all kernels."""

    allow_unknown: Annotated[
        bool, option("--allow-unknown", help="Leave out options that a tree does not have.")
    ] = False
    fuzz: Annotated[
        int | None,
        option(
            "--fuzz",
            metavar="N",
            least=0,
            most=MOST_FUZZ,
            help="Apply patches with N lines of context less, as patch -F.",
        ),
    ] = None


def changed_words(
    words: Sequence[str], asked: ChangeOptions, *, of_one_tree: bool = False
) -> list[str]:
    """Return the words of a command line with what these options stand for: for each kernel that
    has changes, or for the tree that all changes are of.
    """
    changes = [f"+{ALLOW_UNKNOWN}"] if asked.allow_unknown else []
    if asked.fuzz is not None:
        changes.append(str(FuzzChange(asked.fuzz)))
    found = list(words)
    for change in changes:
        found = [*found, change] if of_one_tree else with_change(found, change)
    return found
