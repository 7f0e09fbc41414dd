# SPDX-License-Identifier: GPL-2.0-or-later
"""A region's effect broken down by what did it, in lines that add up to it."""

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from kdelta.infer.effects.estimate import Adds, Estimate, is_seen, total
from kdelta.spec.errors import LabError
from kdelta.studies.search.means import remainder_words
from kdelta.studies.search.model import AblatedRegion

Part = tuple[str, Estimate]
"""A name, and its effect in a region."""


class AccountWords(msgspec.Struct, frozen=True):
    """How an account calls things. parts: what is named in it; whole: what they add up to; total:
    the name of its last line; remainder: of the line for what no part explains.
    """

    parts: str
    whole: str
    total: str
    remainder: str


def changed_most(regions: Iterable[AblatedRegion]) -> list[AblatedRegion]:
    """The regions that changed, by the largest part of what they were, and after them what
    interrupts and other tasks did, where it changed by more than its spread.
    """
    regions = list(regions)
    found = [one for one in regions if not one.rate and one.before.value and one.whole.value]
    found.sort(key=lambda one: -abs(one.whole.value / one.before.value))
    rates = [one for one in regions if one.rate and is_seen(one.whole)]
    return found + rates


def account_rows(
    region: AblatedRegion, parts: Iterable[Part], words: AccountWords, limit: int
) -> list[Part]:
    """A region's `limit` largest parts, the rest as one, and what no part explains. LabError if
    they do not add up to the whole.
    """
    largest = sorted((one for one in parts if one[1].value), key=lambda one: -abs(one[1].value))
    rows, rest = largest[:limit], largest[limit:]
    if rest:
        others = total((effect for _, effect in rest), region.whole.n)
        rows.append((f"others ({len(rest)})", others))
    if region.remainder.value or region.adds is Adds.CANNOT_TELL:
        rows.append((f"{words.remainder}, {remainder_words(region.adds)}", region.remainder))
    found = sum((effect.value for _, effect in rows), Fraction(0))
    if found != region.whole.value:
        raise LabError(
            f"{region.name}: the {words.parts} add up to {float(found)}, and {words.whole} "
            f"{float(region.whole.value)}",
            "this is an error of kdelta; please report it with the output of --json",
        )
    return rows
