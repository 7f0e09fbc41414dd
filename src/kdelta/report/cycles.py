# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles as text: both verdicts of each region, its misses, and both shipped layouts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from kdelta.infer.effects import FIRM, OPEN, OperationEffect, Verdict, Word
from kdelta.infer.ensembles import Interval
from kdelta.infer.placement_model import Compared, CycleVerdict, Draws, PlacementEffect
from kdelta.report import figures
from kdelta.report.calibrated import calibrated_shortly
from kdelta.report.cut import figure_text
from kdelta.report.cut_model import CutRegion
from kdelta.report.layout import WIDTH, wrapped
from kdelta.report.model import CompareReport, CycleReport, ReportedCPU, Unlike

_NAME = 16
_FIGURE = 8
_REACH = 6
_PERCENTILE = 5
_SHIPPED = _FIGURE + _PERCENTILE
_WHOLE_FROM = 10**4
"""From here on figures have no decimals, which would not fit their columns."""

_ORDER = (
    Word.SLOWER,
    Word.FASTER,
    Word.PLACEMENT_ONLY,
    Word.UNRESOLVED,
    Word.NOT_COMPARABLE,
    Word.NOT_SLOWER,
    Word.SAME,
)
SIGNS = {
    **dict.fromkeys(OPEN, "?"),
    Word.SLOWER: "+",
    Word.FASTER: "-",
    Word.SAME: "=",
    Word.PLACEMENT_ONLY: "p",
    Word.UNRESOLVED: "?",
    Word.NOT_COMPARABLE: "x",
    Word.NOT_SLOWER: "<",
}
"""Of verdicts, where there is no room for words."""

SIGNS_NOTE = (
    "+ slower, - faster, = same within {margin}, < not slower in what is counted, "
    "p placement only, ? unresolved, x not comparable"
)
_PARTS = {"l2_code": "  of code", "l2_data": "  of data"}
_FRONT_END = {
    "conditional": "mispred., if",
    "indirect": "mispred., to",
    "return": "mispred., ret",
    "btb-first": "btb 1st misses",
    "l1i-exposed": "l1i exposed",
    "fetch-windows": "fetch windows",
    "op-cache": "op cache",
    "fetch-waits": "fetch waits",
}
"""What happens in a front end, in the width of a column."""

_NAMES = {**_PARTS, **_FRONT_END}
_LABEL = 14
_CELL = 20


def cpu_line(cpu: ReportedCPU) -> str:
    """Whose prices they are, and whether anybody measured them."""
    words = f"{cpu.name} ({cpu.title}); prices of misses are intervals"
    if cpu.calibration:
        words += f"; {calibrated_shortly(cpu.calibration)}"
    elif not cpu.guessed:
        words += "; calibrated"
    return words + (f"; never calibrated: {', '.join(cpu.guessed)}" if cpu.guessed else "")


def cycle_lines(
    cpu: ReportedCPU, found: CycleReport, operations: Sequence[OperationEffect]
) -> list[str]:
    """For each region both verdicts, model cycles, misses, and where the shipped layouts stand."""
    lines = ["", f"model cycles an iteration on {cpu.name}"]
    if found.effects:
        lines += wrapped(_about(cpu, found.effects), "  ", "  ")
    if found.effects or found.cut:
        lines += ["", _heading()]
    paths = _paths(found, operations)
    marks = _marks(found)
    cut = {one.name: one for one in found.cut}
    for effect in sorted(found.effects, key=lambda one: _ORDER.index(one.verdict.word)):
        lines += _head(effect.region, paths, marks)
        lines += [*_block(effect), *_whole_row(cut.get(effect.region))]
    for one in found.cut:
        if one.verdict:
            words = f"model cycles {one.verdict.word}: {cycle_reason(one.verdict)}"
            lines += _head(one.name, paths, marks)
            lines += [*wrapped(words, "  ", "    "), *_whole_row(one)]
    if found.notes:
        lines += ["", "notes on model cycles"]
        lines += [line for note in found.notes for line in wrapped(note, "  ", "    ")]
    return lines + _unlike(cpu, found)


def _about(cpu: ReportedCPU, effects: Sequence[PlacementEffect]) -> str:
    counts = sorted({count for one in effects for count in one.layouts})
    layouts = " and ".join(map(str, counts))
    drawn = ", drawn alike" if all(one.paired for one in effects) else ""
    confidence = min(one.confidence for one in effects)
    unseen = [kind for kind in cpu.kinds if not any(kind in one.misses for one in effects)]
    left_out = f"; {', '.join(unseen)} misses are not in them" if unseen else ""
    if "l2" in unseen:
        left_out += ", since accesses to data were not recorded (--data)"
    return (
        f"means over {layouts} random layouts of each kernel{drawn}, with their confidence "
        f"interval ({100 * confidence:.4g} %); shipped: the layout that the linker made, and how "
        f"many per cent of the layouts cost less (p){left_out}; docs/cpus.md has what else is not"
    )


def _heading() -> str:
    cells = " ".join(f"{word:>{_FIGURE}}" for word in ("base", "other", "diff"))
    shipped = " ".join(f"{word:>{_SHIPPED}}" for word in ("base shipped", "other shipped"))
    return f"{'':<{_NAME}} {cells} {'+-':>{_REACH}} {shipped}"


def _paths(found: CycleReport, operations: Sequence[OperationEffect]) -> dict[str, str]:
    """By region, the verdict on its path in words."""
    texts = {
        one.name: path_words(one.verdict, one.costs.insns.percent if one.costs else None)
        for one in operations
    }
    linked = dict.fromkeys(found.relinked, ", of the same code linked anew")
    return {name: text + linked.get(name, "") for name, text in texts.items()}


def _head(region: str, paths: Mapping[str, str], marks: Mapping[str, str]) -> list[str]:
    path = wrapped(f"path {paths.get(region, 'not known')}", "  ", "    ")
    return ["", f"{region}{marks.get(region, '')}", *path]


def _block(effect: PlacementEffect) -> list[str]:
    lines = wrapped(f"model cycles {cycle_words(effect)}", "  ", "    ")
    lines.append(_row("misses hidden", effect.hidden))
    lines.append(_row("misses exposed", effect.exposed))
    quiet = []
    for kind, compared in effect.misses.items():
        if _nothing(compared.base) and _nothing(compared.other):
            quiet += [] if kind in _PARTS else [kind]
        else:
            lines.append(_row(_NAMES.get(kind, f"{kind} misses"), compared))
    if quiet:
        lines.append(f"  no misses in any layout: {', '.join(quiet)}")
    return [*lines, *_data_lines(effect), *unpriced_lines(effect)]


def _data_lines(effect: PlacementEffect) -> list[str]:
    """What data misses, which no layout changes, and what that makes of the effect."""
    lines = []
    for kind, compared in effect.data.items():
        if not (_nothing(compared.base) and _nothing(compared.other)):
            level, _, stores = kind.partition("-")
            lines.append(_row(f"{level}, stores" if stores else f"{level} misses", compared))
    if not effect.data:
        return []
    if not lines:
        return [f"  of data, none in: {', '.join(map(data_kind, effect.data))}"]
    if effect.data_cycles is not None:
        cost = _signed_range(effect.data_cycles)
        words = f"of the effect, what data misses in any layout: {cost} model cycles"
        lines += wrapped(words, "  ", "    ")
    return lines


def unpriced_lines(effect: PlacementEffect) -> list[str]:
    """What has no price, and so is not in the model cycles, where its number changes."""
    if not effect.unpriced:
        return []
    changes = [
        f"{name} {figures.number(Fraction(one.base.mean))} -> "
        f"{figures.number(Fraction(one.other.mean))}"
        for name, one in effect.unpriced.items()
    ]
    return wrapped(f"without a price, and not in it: {', '.join(changes)}", "  ", "    ")


def data_kind(kind: str) -> str:
    """A kind of misses of data, as a report calls it."""
    return kind.replace("-store", " st.")


def _signed_range(interval: Interval) -> str:
    ends = [f"{end:+.4g}" if end else "0" for end in (interval.low, interval.high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _whole_row(region: CutRegion | None) -> list[str]:
    """What all of a region misses as shipped whose trace has but the first part."""
    found = region.kernels if region else {}
    counts = {who: one.whole for who, one in found.items() if one.whole is not None}
    if not counts:
        return []
    cells = [figure_text(counts[who]) if who in counts else "" for who in ("base", "other")]
    shipped = " ".join(f"{cell:>{_FIGURE}}{'':{_PERCENTILE}}" for cell in cells)
    blank = " " * (3 * (_FIGURE + 1) + _REACH)
    return [f"{'  l1i, all of it':<{_NAME}} {blank} {shipped}".rstrip()]


def _nothing(draws: Draws) -> bool:
    return draws.most == draws.shipped == 0


def _row(name: str, compared: Compared) -> str:
    base, other = compared.base, compared.other
    largest = max(base.mean, other.mean, base.shipped, other.shipped)
    unit = figures.SCALE if largest >= _WHOLE_FROM else 1
    left, right = (figures.scaled(Fraction(side.mean), unit) for side in (base, other))
    diff = figures.signed(right - left, _FIGURE, Fraction(compared.effect.value), aligned=False)
    shipped = " ".join(
        _figure(figures.scaled(Fraction(side.shipped), unit)) + _percentile(side)
        for side in (base, other)
    )
    cells = f"{_figure(left)} {_figure(right)} {diff} {_reach(compared):>{_REACH}}"
    return f"{f'  {name}':<{_NAME}} {cells} {shipped}".rstrip()


def _figure(hundredths: int) -> str:
    return figures.plain(hundredths, _FIGURE, aligned=False)


def _reach(compared: Compared) -> str:
    """How far the effect's interval reaches from its value, at most."""
    effect = compared.effect
    reach = max(effect.high - effect.value, effect.value - effect.low)
    return figures.short(Fraction(reach)) if math.isfinite(reach) else "?"


def _percentile(draws: Draws) -> str:
    text = "" if draws.percentile is None else f"p{draws.percentile:.0f}"
    return f"{text:>{_PERCENTILE}}"


def path_words(verdict: Verdict, part: Fraction | None) -> str:
    """A verdict on a path in words, with its size in per cent where it has one."""
    if verdict.word in {*FIRM, Word.PLACEMENT_ONLY}:
        return f"{verdict.word} ({figures.percent(part)})"
    if verdict.word is Word.SAME:
        return "same, exactly" if verdict.within == 0 else "same within the spread"
    return f"{verdict.word} ({verdict.reason})"


def cycle_words(effect: PlacementEffect) -> str:
    """A verdict on model cycles in words, with its size and its reason."""
    verdict = effect.verdict
    words = str(verdict.word)
    if verdict.word is Word.SAME:
        words += ", exactly" if verdict.within == 0 else f" within {margin_text(verdict.within)}"
    shipped = in_per_cent(effect.shipped.relative)
    words += f" ({in_per_cent(effect.relative)}; as shipped {shipped})"
    return words + (f": {cycle_reason(verdict)}" if verdict.reason else "")


def cycle_reason(verdict: CycleVerdict) -> str:
    """What a verdict hangs on, and what would settle it."""
    if verdict.layouts is None:
        return verdict.reason
    return f"{verdict.reason}; --layouts {verdict.layouts} would probably do"


def margin_text(margin: float | None) -> str:
    """A margin in per cent."""
    return f"{100 * (margin or 0):.4g} %"


def in_per_cent(interval: Interval) -> str:
    """An interval of a fraction; one figure where both ends read the same."""
    ends = [_percent(end) for end in (interval.low, interval.high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _percent(value: float) -> str:
    return figures.percent(Fraction(100 * value)) if math.isfinite(value) else "any"


def _marks(found: CycleReport) -> dict[str, str]:
    """Behind a region's name, the numbers of what its path hangs on."""
    marks: dict[str, str] = {}
    for number, one in enumerate(_hanging(found), start=1):
        for region in one.regions:
            marks[region] = marks.get(region, "") + f" [{number}]"
    return marks


def _unlike(cpu: ReportedCPU, found: CycleReport) -> list[str]:
    if not found.unlike:
        return []
    title = f"not as on a real {cpu.name}, and the regions whose work hangs on it"
    lines = ["", title]
    for number, one in enumerate(_hanging(found), start=1):
        who = " and ".join(one.kernels)
        lines += wrapped(f"[{number}] {who}: {one.text}", "  ", "      ")
    rest = dict.fromkeys(one.name for one in found.unlike if not one.regions)
    if rest:
        lines += wrapped(f"no region hangs on: {'; '.join(rest)}", "  ", "      ")
    return lines


def _hanging(found: CycleReport) -> list[Unlike]:
    """What was not as on the CPU, and has a bearing on some region."""
    return [one for one in found.unlike if one.regions]


def cpus_lines(reports: Sequence[CompareReport]) -> list[str]:
    """Kernels by CPUs: the model cycles of each region; as many CPUs a table as fit."""
    priced = [report for report in reports if report.cpu and any(_cycles(report))]
    if len(priced) < 2:
        return []
    wide = max(1, (WIDTH - 1 - _LABEL) // _CELL)
    margin = next(effect.margin for report in priced for effect in _effects(report))
    title = "model cycles an iteration, misses hidden to exposed, mean over layouts"
    lines = [title, *wrapped(SIGNS_NOTE.format(margin=margin_text(margin)), "", "")]
    for start in range(0, len(priced), wide):
        lines += _cpus_table(priced[start : start + wide])
    return lines


def _cpus_table(reports: Sequence[CompareReport]) -> Iterator[str]:
    yield ""
    names = (report.cpu.name for report in reports if report.cpu)
    yield f"{'':<{_LABEL}}" + "".join(f"{name:>{_CELL - 2}}  " for name in names).rstrip()
    regions = dict.fromkeys(effect.region for one in reports for effect in _effects(one))
    others = len(reports[0].others)
    for region in regions:
        yield region
        columns = [_column(report, region) for report in reports]
        labels = ["base", *(["other"] if others == 1 else _numbered(others))]
        for label in labels:
            cells = "".join(f"{column.get(label, '-'):>{_CELL}}" for column in columns)
            yield f"{f'  {label}':<{_LABEL}}{cells}".rstrip()


def _numbered(count: int) -> list[str]:
    return [f"other {number + 1}" for number in range(count)]


def _column(report: CompareReport, region: str) -> Mapping[str, str]:
    """A region's model cycles by kernel, each with the sign of its verdict."""
    cells: dict[str, str] = {}
    alone = len(report.others) == 1
    for number, found in enumerate(_cycles(report)):
        for effect in found.effects if found else ():
            if effect.region == region:
                base = _range(effect.hidden.base.mean, effect.exposed.base.mean)
                other = _range(effect.hidden.other.mean, effect.exposed.other.mean)
                cells.setdefault("base", f"{base}  ")
                label = "other" if alone else f"other {number + 1}"
                cells[label] = f"{other} {SIGNS[effect.verdict.word]}"
    return cells


def _range(low: float, high: float) -> str:
    ends = [_brief(low), _brief(high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _brief(value: float) -> str:
    if value >= _WHOLE_FROM:
        return figures.short(Fraction(value))
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _cycles(report: CompareReport) -> list[CycleReport | None]:
    return [compared.cycles for compared in report.others]


def _effects(report: CompareReport) -> Iterator[PlacementEffect]:
    for found in _cycles(report):
        yield from found.effects if found else ()
