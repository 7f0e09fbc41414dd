# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles as text: both verdicts of each region, its misses, and both layouts as linked."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.effects import FIRM, OPEN, Verdict, Word
from kdelta.report import figures
from kdelta.report.lines import WIDTH, wrapped
from kdelta.report.model import ReportedCPU

_WHOLE_FROM = 10**4
"""From here on figures have no decimals, which would not fit their columns."""

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
_LABEL = 14
_CELL = 20


def cpu_line(cpu: ReportedCPU) -> str:
    """Return whose prices they are, and which of them were not measured."""
    words = f"{cpu.name} ({cpu.title}); prices of misses are intervals"
    return words + (
        f"; not measured: {', '.join(cpu.without_measured_cost)}"
        if cpu.without_measured_cost
        else "; measured"
    )


def data_kind(kind: str) -> str:
    """A kind of misses of data, as a report calls it."""
    return kind.replace("-store", " st.")


def path_words(verdict: Verdict, part: Fraction | None) -> str:
    """A verdict on a path in words, with its size in per cent where it has one."""
    if verdict.word in {*FIRM, Word.PLACEMENT_ONLY}:
        return f"{verdict.word} ({figures.percent(part)})"
    if verdict.word is Word.SAME:
        return "same, exactly" if verdict.within == 0 else "same within the spread"
    return f"{verdict.word} ({verdict.reason})"


def cycle_words(effect: PlacementEffect) -> str:
    """Return a verdict on model cycles in words, with its size and its reason."""
    verdict = effect.verdict
    words = str(verdict.word)
    if verdict.word is Word.SAME:
        words += ", exactly" if verdict.within == 0 else f" within {margin_text(verdict.within)}"
    linked = figures.in_per_cent(effect.as_linked.relative)
    words += f" ({figures.in_per_cent(effect.relative)}; as linked {linked})"
    return words + (f": {verdict.text}" if verdict.reason else "")


def margin_text(margin: float | None) -> str:
    """A margin in per cent."""
    return f"{100 * (margin or 0):.4g} %"


OnCPU = tuple[ReportedCPU | None, Sequence[Mapping[str, PlacementEffect]]]
"""A CPU, and the effects on model cycles, by region, of a base against each of its others."""


def cpus_lines(reports: Sequence[OnCPU]) -> list[str]:
    """Return kernels by CPUs: model cycles of each region; as many CPUs a table as fit."""
    priced = [(cpu, found) for cpu, found in reports if cpu and any(found)]
    if len(priced) < 2:
        return []
    wide = max(1, (WIDTH - 1 - _LABEL) // _CELL)
    margin = next(effect.margin for _, found in priced for one in found for effect in one.values())
    title = "model cycles an iteration, misses hidden to exposed, mean over layouts"
    lines = [title, *wrapped(SIGNS_NOTE.format(margin=margin_text(margin)), "", "")]
    for start in range(0, len(priced), wide):
        lines += _cpus_table(priced[start : start + wide])
    return lines


def _cpus_table(
    reports: Sequence[tuple[ReportedCPU, Sequence[Mapping[str, PlacementEffect]]]],
) -> Iterator[str]:
    yield ""
    names = (cpu.name for cpu, _ in reports)
    yield f"{'':<{_LABEL}}" + "".join(f"{name:>{_CELL - 2}}  " for name in names).rstrip()
    for region in dict.fromkeys(name for _, found in reports for one in found for name in one):
        yield region
        columns = [_column(found, region) for _, found in reports]
        for label in ("base", *_others(reports[0][1])):
            cells = "".join(f"{column.get(label, '-'):>{_CELL}}" for column in columns)
            yield f"{f'  {label}':<{_LABEL}}{cells}".rstrip()


def _others(found: Sequence[Mapping[str, PlacementEffect]]) -> list[str]:
    """What the other kernels are called."""
    count = len(found)
    return ["other"] if count == 1 else [f"other {number}" for number in range(1, count + 1)]


def _column(reports: Sequence[Mapping[str, PlacementEffect]], region: str) -> Mapping[str, str]:
    """A region's model cycles by kernel, each with the sign of its verdict."""
    cells: dict[str, str] = {}
    others = _others(reports)
    for number, found in enumerate(reports):
        if effect := found.get(region):
            ends = effect.hidden, effect.exposed
            base = figures.span(*(_brief(one.base.mean) for one in ends))
            other = figures.span(*(_brief(one.other.mean) for one in ends))
            cells.setdefault("base", f"{base}  ")
            cells[others[number]] = f"{other} {SIGNS[effect.verdict.word]}"
    return cells


def _brief(value: float) -> str:
    if value >= _WHOLE_FROM:
        return figures.short(Fraction(value))
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
