# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether objects that were compiled again with a unit flipped hold anything new that runs."""

from collections.abc import Collection

import msgspec

from kdelta.infer.reach import Kept, Side
from kdelta.kernels.digest import Digest


class Difference(msgspec.Struct, frozen=True):
    """What differs in one object. `what` is "function", "data", "section", "generated" or "object";
    `how` is "changed", "added" or "removed"; `matters` unless nothing executed depends on it.
    """

    path: str
    what: str
    name: str
    how: str
    matters: bool = True


def objects_to_recompile(kept: Kept, digest: Digest) -> list[str] | None:
    """The make targets (objects, and generated files first) that decide whether the unit matters;
    None when recompiling cannot decide: objects come or go, or the link itself changes.
    """
    raise NotImplementedError


def compare_objects(a: Digest, b: Digest, paths: Collection[str]) -> list[Difference]:
    """What differs between two digests' objects (and generated files) of these paths."""
    raise NotImplementedError


def differences_that_matter(
    side: Side, flipped: Digest, paths: Collection[str]
) -> list[Difference]:
    """`compare_objects` with `matters` decided by what `side` executed: empty iff executed code
    and all it reads is the same, so that the unit has no effect on the path from there.
    """
    raise NotImplementedError
