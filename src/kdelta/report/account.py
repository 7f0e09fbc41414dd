# SPDX-License-Identifier: GPL-2.0-or-later
"""A region's effect taken apart by what did it, in lines that add up to it."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.estimate import Estimate
from kdelta.infer.means import Adds, is_seen, total
from kdelta.report import figures
from kdelta.report.ablation_model import AblatedRegion
from kdelta.report.layout import wrapped
from kdelta.report.means import remainder_words
from kdelta.spec.errors import LabError

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


def changed_most(regions: Iterable[AblatedRegion], most: int) -> list[AblatedRegion]:
    """So many regions that changed by the largest part of what they were, and after them what
    interrupts and other tasks did, where it changed by more than its spread.
    """
    regions = list(regions)
    found = [one for one in regions if not one.rate and one.before.value and one.whole.value]
    found.sort(key=lambda one: -abs(one.whole.value / one.before.value))
    rates = [one for one in regions if one.rate and is_seen(one.whole)]
    return found[:most] + rates


def account_lines(
    region: AblatedRegion,
    parts: Iterable[Part],
    words: AccountWords,
    *,
    limit: int,
    beside: Sequence[str] = (),
) -> list[str]:
    """The region before and after, its `limit` largest parts, the rest in one line, the total, and
    then what else is to be said beside. LabError if the lines do not add up to the total.
    """
    rows = account_rows(region, parts, words, limit)
    whole = figures.scaled(region.whole.value)
    printed = figures.rounded_to_total([effect.value for _, effect in rows], whole)
    before, after = figures.number(region.before.value), figures.number(region.after.value)
    each = "a virtual second" if region.rate else "an iteration"
    lines = ["", f"{region.name}: {before} -> {after} instructions {each}"]
    for (name, effect), shown in zip(rows, printed, strict=True):
        lines.append(_line(region, shown, effect, name))
    lines.append(_line(region, whole, region.whole, words.total))
    lines += beside
    if region.lookups.value:
        more = figures.brief(region.lookups.value, 10).strip()
        text = f"beside that {more} in functions that look up addresses, which is placement"
        lines += wrapped(text, "  ", "    ")
    return lines


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


def _line(region: AblatedRegion, hundredths: int, effect: Estimate, name: str) -> str:
    before = region.before.value
    part = figures.percent(100 * effect.value / before if before else None)
    value = figures.signed(hundredths, 12, effect.value, aligned=False)
    return f"{value} {figures.spread(effect):>7} {part:>8}  {name}"
