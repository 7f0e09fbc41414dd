# SPDX-License-Identifier: GPL-2.0-or-later
"""What a comparison answers in a sentence or two, in every form."""

import re
from collections import Counter
from fractions import Fraction

import msgspec

from kdelta.infer.effects.effects import FIRM, OperationEffect, Word
from kdelta.report import figures, words
from kdelta.report.lines import function_name
from kdelta.report.model import Compared, CompareReport, Side
from kdelta.report.stored import Stored
from kdelta.studies.compare.tables import by_size

LEAST = Fraction(5, 1000)
"""The part of its cost from which on a change of an operation is listed."""

LEAST_PPM = "least_ppm"
"""Of `Stored.shown`: another such part, in millionths."""

LISTED = (Word.SLOWER, Word.FASTER, Word.MIXED)
"""Words of changes that are named."""

_PERCENT_DIGITS = 2
_WHOLE_FROM = 10
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:-rc\d+)?")


class Pair(msgspec.Struct, frozen=True):
    """One kernel against the base: `names` are short ones of both, `least` see LEAST."""

    report: CompareReport
    compared: Compared
    names: tuple[str, str]
    least: Fraction

    def of(self, *words: Word) -> list[OperationEffect]:
        """The operations with one of these words, those that changed most first."""
        operations = self.compared.effects.operations
        return [one for one in by_size(operations) if one.verdict.word in words]

    def matters(self, one: OperationEffect) -> bool:
        """Whether its change is large enough to be listed."""
        part = one.costs.insns.percent if one.costs else None
        return part is None or abs(part) >= 100 * self.least


def least_of(stored: Stored) -> Fraction:
    """Return the part that a study was asked to list changes from."""
    return Fraction(stored.shown[LEAST_PPM], 10**6) if LEAST_PPM in stored.shown else LEAST


def pair_of(report: CompareReport, compared: Compared, least: Fraction) -> Pair:
    """Return the pair of a report's base and another kernel."""
    return Pair(report, compared, _short_names(report.base, compared.side), least)


def path_text(pair: Pair) -> str:
    """Return the verdict on the path of all operations."""
    base, other = pair.names
    cpu = f", as on {pair.report.cpu.title}" if pair.report.cpu else ""
    what = words.counted(len(pair.compared.effects.operations), "operation")
    linux = "Linux " if base != "base" else ""
    parts = [f"{count} {word}" for word, count in tally(pair).items()]
    text = f"{linux}{other} against {base}, {what} of {pair.report.workload}{cpu}: "
    text += f"{', '.join(parts)}."
    for word, title in ((Word.SLOWER, "Slower by most"), (Word.FASTER, "Faster by most")):
        found = [one for one in pair.of(word) if pair.matters(one)]
        if found:
            text += f" {title}: {_named(found[0])}."
    return text


def tally(pair: Pair) -> dict[str, int]:
    """Return how many operations there are of each kind; changes too small to matter are one."""
    firm = [one for one in pair.of(*FIRM) if pair.matters(one)]
    counts = Counter(one.verdict.word for one in firm)
    rest = Counter(one.verdict.word for one in pair.compared.effects.operations)
    found = {
        **{word.value: counts[word] for word in LISTED},
        f"changed by less than {percent(pair.least)}": len(pair.of(*FIRM)) - len(firm),
        **{word.value: rest[word] for word in Word if word not in FIRM},
    }
    return {word: count for word, count in found.items() if count}


def _named(one: OperationEffect) -> str:
    cause = cause_of(one)
    because = f" ({cause})" if cause else ""
    return f"{one.name} {change(one)}{because}"


def change(one: OperationEffect) -> str:
    """Return by how many per cent the path of an operation changed."""
    part = one.costs.insns.percent if one.costs else None
    # Of the same path a sign says nothing.
    if one.verdict.word is Word.SAME and round(float(part or 0), _PERCENT_DIGITS) == 0:
        return "0%"
    return figures.percent(part)


def cause_of(one: OperationEffect) -> str:
    """The function that accounts for most of the change, with its part of it."""
    if one.costs is None or not one.functions or one.verdict.word is Word.SAME:
        return ""
    whole = one.costs.insns.effect.value
    same_way = [found for found in one.functions if found.cost.effect.value * whole > 0]
    if not same_way:
        return ""
    most = max(same_way, key=lambda found: abs(found.cost.effect.value))
    value = most.cost.effect.value
    size = figures.brief(Fraction(round(value)) if abs(value) >= _WHOLE_FROM else value, 6).strip()
    return f"{size} {function_name(most.name, most.origin)}"


def percent(part: Fraction) -> str:
    """Return a part in per cent, as short as it can be."""
    return f"{float(100 * part):g}%"


def _short_names(base: Side, other: Side) -> tuple[str, str]:
    """Names for columns: the kernels' versions if they differ."""
    versions = [_version(side) for side in (base, other)]
    if all(versions) and versions[0] != versions[1]:
        return versions[0], versions[1]
    return "base", "other"


def _version(side: Side) -> str:
    """The version in the spec's package, or else in the release."""
    _, equal, package = side.spec.rpartition("=")
    for text in (package if equal and side.spec.startswith("deb") else "", side.release):
        if found := _VERSION.search(text):
            return found[0]
    return ""
