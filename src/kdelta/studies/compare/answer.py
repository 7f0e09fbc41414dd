# SPDX-License-Identifier: GPL-2.0-or-later
"""What a comparison answers in a sentence or two, in every form."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import msgspec

from kdelta.cpus.model import is_bare_metal, is_guest
from kdelta.infer.effects.by_code import by_code
from kdelta.infer.effects.costs import Costs
from kdelta.infer.effects.deferred import WITH_OTHERS
from kdelta.infer.effects.effects import FIRM, MARGIN, OperationEffect, Word, weighed
from kdelta.infer.effects.estimate import Quantity, is_seen
from kdelta.lab.plan import COMMAND_REGION
from kdelta.measures.forms import form_of
from kdelta.report import figures, words
from kdelta.report.effects import EffectsView
from kdelta.report.lines import is_bare
from kdelta.report.measured import MeasuredEffects
from kdelta.report.names import SideNames, differences, side_names
from kdelta.report.stored import Stored
from kdelta.studies.compare.causes import cause_of
from kdelta.studies.compare.model import Compared, CompareReport, by_size, operations_of

LEAST_PPM = "least_ppm"
"""Of `Stored.shown`: the part of its cost from which on a change is listed, in millionths."""

LISTED = (Word.SLOWER, Word.FASTER, Word.MIXED)
"""Words of changes that are named."""

_PERCENT_DIGITS = 2

_LEAST_PERCENT = Fraction(1, 10)
"""Below it a change is named in instructions first."""


class Pair(msgspec.Struct, frozen=True):
    """One kernel against the base on one machine: `names` are those of both, `least` see LEAST_PPM.
    `about` names the pair where there are more; `mark` is behind the ids of its sections, `who`
    before the names of its suites.
    """

    report: CompareReport
    compared: Compared
    names: SideNames
    least: Fraction
    about: str = ""
    mark: str = ""
    who: str = ""

    @property
    def title(self) -> str:
        """Return what is compared with what."""
        return self.names.against()

    @property
    def differ_in(self) -> str:
        """Return in what both kernels differ."""
        known = self.compared.config
        options = None if known is None else [one.option for one in known]
        return differences(self.report.base, self.compared.side, options)

    @property
    def operations(self) -> tuple[OperationEffect, ...]:
        """Return the effects on the path."""
        return tuple(operations_of(self.compared.effects))

    @property
    def on_cpu(self) -> str:
        """Return on which CPU, if on any."""
        return f" on {self.report.cpu.name}" if self.report.cpu else ""

    @property
    def measured(self) -> list[tuple[MeasuredEffects, EffectsView]]:
        """Return what measures besides the path found, and how each is shown."""
        return [(one, form_of(one.measure)) for one in self.compared.measured]

    @property
    def joined(self) -> list[tuple[MeasuredEffects, EffectsView]]:
        """Return those of them that are in the path's table."""
        return [(found, form) for found, form in self.measured if form.joined and found.effects]

    def headed(self, text: str) -> str:
        """Return a heading that says which pair it is of."""
        return f"{text}: {self.about}" if self.about else text

    def of(self, *words: Word) -> list[OperationEffect]:
        """Return the operations with one of these words, those that changed most first."""
        return [one for one in by_size(self.operations) if one.verdict.word in words]

    def matters(self, one: OperationEffect) -> bool:
        """Whether its change is large enough to be listed."""
        part = one.costs.insns.percent if one.costs else None
        if one.costs is None or part is None or abs(part) >= 100 * self.least:
            return True
        if one.verdict.reason == WITH_OTHERS:
            return True
        found = weighed(one.costs)
        return bool(found.terms) and not found.within(self.least)


def least_of(stored: Stored) -> Fraction:
    """Return the part that a study was asked to list changes from."""
    return Fraction(stored.shown[LEAST_PPM], 10**6) if LEAST_PPM in stored.shown else MARGIN


def pairs_of(reports: Sequence[CompareReport], least: Fraction) -> list[Pair]:
    """Return every pair of a base and another kernel on one machine."""
    found = []
    for at, report in enumerate(reports, start=1):
        several = len(report.others) > 1
        titles = report.names.names[1:]
        for number, (one, title) in enumerate(zip(report.others, titles, strict=True), start=1):
            about = [title] if several else []
            about += [report.cpu.name] if len(reports) > 1 and report.cpu else []
            who = f"other {number}: " if several else ""
            names = side_names([report.base, one.side])
            mark = f"-{at}-{number}"
            found.append(Pair(report, one, names, least, " on ".join(about), mark, who))
    return found


def path_text(pair: Pair, counted: str = ", by instructions executed, not time") -> str:
    """Return the verdict on the path of all operations; counted: by what, in words."""
    cpu = _as_on(pair.report)
    what = words.counted(len(pair.operations), "operation")
    title = f"Linux {pair.title}" if pair.title[:1].isdigit() else pair.title
    parts = [f"{count} {word}" for word, count in tally(pair).items()]
    whole = whole_program(pair)
    if whole and whole.costs:
        return f"{title}, {pair.report.workload}{cpu}: {_whole_text(whole)}"
    text = f"{title}, {what} of {pair.report.workload}{cpu}{counted}: "
    text += f"{', '.join(parts)}."
    for word, title in ((Word.SLOWER, "Slower by most"), (Word.FASTER, "Faster by most")):
        found = [one for one in pair.of(word) if pair.matters(one)]
        if found:
            text += f" {title}: {_named(found[0])}."
    return text + _by_code(pair)


def _by_code(pair: Pair) -> str:
    """Return where code that differs costs more than before, and runs vary by more than that."""
    found = [one for one in pair.of(Word.SAME, Word.UNRESOLVED) if by_code(one)]
    if not found:
        return ""
    others = f" and {words.counted(len(found) - 1, 'other')}" if len(found) > 1 else ""
    return f" Exact, but less than runs vary by: {cause_of(found[0])} in {found[0].name}{others}."


def whole_program(pair: Pair) -> OperationEffect | None:
    """Return the effect on a program that marks no regions, if that is what was compared."""
    operations = pair.operations
    is_whole = [one.name for one in operations] == [COMMAND_REGION]
    return operations[0] if is_whole else None


def _whole_text(one: OperationEffect) -> str:
    """The verdict on a whole program, and what its kernel and user instructions are."""
    assert one.costs is not None
    parts = {
        "": one.costs.insns,
        "kernel ": one.costs.kernel_insns,
        "user ": one.costs.user_insns,
    }
    texts = [
        f"{name}instructions {part_change(quantity)} "
        f"({round(quantity.base.value)} to {round(quantity.other.value)})"
        for name, quantity in parts.items()
    ]
    reason = f" ({one.verdict.reason})" if one.verdict.reason else ""
    cause = cause_of(one)
    most = f" Largest part: {cause}." if cause else ""
    return f"{one.verdict.word}{reason}. {_capital('; '.join(texts))}.{most}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def part_change(quantity: Quantity) -> str:
    """Return by how many per cent a figure changed; of the same one no sign is shown."""
    part = quantity.percent
    if part is not None and round(float(part), _PERCENT_DIGITS) == 0:
        return "same" if quantity.effect.value == 0 else "+-0%"
    return figures.effect_percent(quantity)


def like_name(report: CompareReport) -> str:
    """Return what the machine is like: the CPU that was named, or else the default one; empty if it
    is neither.
    """
    return report.cpu.title if report.cpu else str(report.machine.get("cpu_like", ""))


def _as_on(report: CompareReport) -> str:
    title = like_name(report)
    bare = " without its forced features" if is_bare(report.machine) and not report.cpu else ""
    cpus = f", {report.machine['cpus']} CPUs" if "cpus" in report.machine else ""
    return (f", {_whose_paths(report)} {title}{bare}" if title else "") + cpus


def _whose_paths(report: CompareReport) -> str:
    """Return what comes before the CPU's title; runs of older versions do not say which it is."""
    title = like_name(report)
    article = "an" if title[:1].lower() in "aeiou" else "a"
    if is_bare_metal(str(report.machine.get("cpu", ""))):
        return f"bare-metal paths of {article}"
    if report.cpu and is_guest(report.cpu.name):
        return f"a guest's paths on {article}"
    return "as on"


def tally(pair: Pair) -> dict[str, int]:
    """Return how many operations there are of each kind; changes too small to matter are one."""
    firm = [one for one in pair.of(*FIRM) if pair.matters(one)]
    counts = Counter(one.verdict.word for one in firm)
    rest = Counter(one.verdict.word for one in pair.operations)
    found = {
        **{word.value: counts[word] for word in LISTED},
        f"changed by less than {percent(pair.least)}": len(pair.of(*FIRM)) - len(firm),
        Word.SAME.value: rest.pop(Word.SAME, 0),
        **{word.value: rest[word] for word in Word if word not in FIRM and word in rest},
    }
    return {word: count for word, count in found.items() if count}


def about(part: Fraction) -> str:
    """Return a part in per cent, with two digits."""
    return f"{100 * float(part):.2g}%"


def within(one: OperationEffect) -> Fraction:
    """Return how large an effect on an operation that is the same may be, as a part of the base."""
    if one.costs is None or not one.verdict.within or not one.costs.insns.base.value:
        return Fraction(0)
    return one.verdict.within / one.costs.insns.base.value


def _named(one: OperationEffect) -> str:
    cause = cause_of(one)
    return f"{one.name} {change(one)}" + (f" ({cause})" if cause else "")


def change(one: OperationEffect) -> str:
    """Return by how many per cent the path of an operation changed; where that is little, and not
    by chance, first by how many instructions.
    """
    if one.costs is None:
        return figures.percent(None)
    # Of the same path a sign says nothing.
    part = one.costs.insns.percent
    if one.verdict.word is Word.SAME and round(float(part or 0), _PERCENT_DIGITS) == 0:
        return "0%"
    insns = one.costs.insns
    text = figures.effect_percent(insns)
    if part is None or abs(part) >= _LEAST_PERCENT or not is_seen(insns.effect):
        return text
    return f"{figures.difference(insns.effect.value)} ({text})"


def certainty(costs: Costs) -> str:
    """Return how far a change may be off, in per cent of the base; or in how many pairs of runs it
    is equal, where runs vary.
    """
    effect, base = costs.insns.effect, costs.insns.base.value
    if effect.n < 2:
        return "n=1"
    if effect.exact:
        return figures.equal_pairs(effect) or "exact"
    if not base:
        return ""
    far = 100 * effect.half_width / abs(base)
    places = figures.places_within(far)
    shown = math.ceil(far * 10**places) / 10**places
    return f"+-{shown:.{places}f}%" if far < 100 else "+-100%+"


def percent(part: Fraction) -> str:
    """Return a part in per cent, as short as it can be."""
    return f"{float(100 * part):g}%"


def heading(reports: Sequence[CompareReport]) -> str:
    """Return what was compared with what, in some words."""
    first = reports[0]
    base, *others = first.names.names
    cpus = [report.cpu.name for report in reports if report.cpu]
    on = f" on {words.listed(cpus)}" if cpus else ""
    return f"{words.some(others, 2)} against {base}: {first.workload}{on}"
