# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of versions, as dpkg has it (deb-version(7)); of a kernel's releases, too."""

import functools
import re
from itertools import zip_longest

_TURN = re.compile(r"(\D*)(\d*)")


def compare_versions(a: str, b: str) -> int:
    """Below zero if `a` is earlier than `b`, above zero if it is later."""
    (epoch, *rest), (other, *others) = _parts(a), _parts(b)
    if epoch != other:
        return int(epoch) - int(other)
    return next(filter(None, map(_compare, rest, others)), 0)


version_key = functools.cmp_to_key(compare_versions)
"""What to sort versions by."""


def _parts(text: str) -> tuple[str, str, str]:
    """Epoch, upstream version and revision."""
    epoch, colon, rest = text.partition(":")
    if not (colon and epoch.isdecimal()):
        epoch, rest = "0", text
    upstream, dash, revision = rest.rpartition("-")
    return (str(int(epoch)), upstream, revision) if dash else (str(int(epoch)), rest, "")


def _compare(a: str, b: str) -> int:
    """Of one part: what is no number by its signs, numbers by their value, in turns."""
    for one, two in zip_longest(_turns(a), _turns(b), fillvalue=("", 0)):
        for sign, other in zip_longest(one[0], two[0], fillvalue=""):
            if difference := _weight(sign) - _weight(other):
                return difference
        if difference := one[1] - two[1]:
            return difference
    return 0


def _turns(text: str) -> list[tuple[str, int]]:
    return [(found[1], int(found[2] or 0)) for found in _TURN.finditer(text)]


def _weight(sign: str) -> int:
    """A tilde is before the end, which is before letters, which are before all else."""
    if sign == "~":
        return -1
    if not sign:
        return 0
    return ord(sign) if sign.isalpha() else ord(sign) + 0x110000
