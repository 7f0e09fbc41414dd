# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen of a comparison: the answer in sentences, then what changed, a line each."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.chance import SO_FAR
from kdelta.infer.effects.effects import FIRM, OPEN, Costs, OperationEffect, Word
from kdelta.report import words
from kdelta.report.cycles import in_per_cent
from kdelta.report.document import (
    Answer,
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Items,
    Prose,
    Section,
    Table,
)
from kdelta.report.text import GAP, WIDTH, text_of
from kdelta.studies.compare.answer import (
    LISTED,
    Pair,
    about,
    cause_of,
    change,
    path_text,
    percent,
    within,
)
from kdelta.studies.compare.functions import functions_table

LINES = 50
"""Of one screen."""

_NAMED = 3
_FUNCTIONS = 10
_LEAST_ROWS = 3
_FEW = 5
_LONGEST_NAME = 24
_BOUND = 44
"""Of a line's characters, those after what is always there."""
_CAUSE = "largest part"
_DEPENDS = (Word.NOT_STEADY, Word.DEPENDS_ON_STATE, Word.DEPENDS_ON_SPEED)
_FOOTER = (
    "Instructions of the measured tasks, kernel and user; not time. +-: how far the change may be "
    "off by all runs, which start in different states. "
    "All figures and functions: kdelta report --all, or --format html -o FILE."
)

Groups = tuple[list[OperationEffect], ...]
"""The operations with a row: what is slower, what is faster, and what changed by little."""


def first_screen(document: Document, pairs: Sequence[Pair]) -> Document:
    """Return the first screen of a comparison's document: at most LINES lines of text where there
    is one pair of kernels and nothing failed.
    """
    found = [(pair, _groups(pair)) for pair in pairs]
    sizes = [len(group) for _, groups in found for group in groups]
    document = msgspec.structs.replace(
        document,
        answers=tuple(Answer((_answer(pair),)) for pair in pairs),
        facts=(),
        environment=(Section("more", "", (Prose(_FOOTER),)),),
        notes=(),
        warnings=_first_of(document.warnings),
    )
    cpus = [one for one in document.sections if one.id == "cpus"]
    least, room = _LEAST_ROWS * len(sizes), sum(sizes)
    while True:
        tables = _sections(found, _shared(sizes, room))
        screen = msgspec.structs.replace(document, sections=(*tables, *cpus))
        excess = _excess(screen)
        if excess <= 0 or room <= least:
            return _with_accounts(screen, pairs)
        room = max(least, room - excess)


def _excess(document: Document) -> int:
    """How many lines it has too many."""
    return text_of(document).count("\n") - LINES


def _groups(pair: Pair) -> Groups:
    """What changed by less has rows where that is little; if nothing else has, all operations."""
    rows = pair.of(Word.SLOWER), pair.of(Word.FASTER)
    shown = tuple([one for one in found if pair.matters(one)] for found in rows)
    if not any(shown):
        return ([one for one in pair.of(*Word) if one.costs],)
    others = [one for one in pair.of(Word.SAME, *FIRM) if not pair.matters(one)]
    return (*shown, others) if len(others) <= _FEW else shown


def _answer(pair: Pair) -> str:
    """What a reader wants to know, in sentences."""
    if not any(one.costs for one in pair.compared.effects.operations):
        base, other = pair.names
        return f"{other} against {base}: nothing to compare, no operation succeeded on both sides."
    cycles = pair.compared.cycles
    found = Counter(one.verdict.word for one in cycles.effects) if cycles else Counter[Word]()
    why = {Word.PLACEMENT_ONLY: " (where the linker put the code, not what it does)"}
    parts = [f"{found[word]} {word}{why.get(word, '')}" for word in Word if found[word]]
    return path_text(pair) + (f" In model cycles: {', '.join(parts)}." if parts else "")


def _sections(found: Sequence[tuple[Pair, Groups]], budgets: Sequence[int]) -> Iterator[Section]:
    """Each pair's rows, as many of each group as its budget says, and what else is known."""
    left = list(budgets)
    for at, (pair, groups) in enumerate(found):
        title = " against ".join(reversed(pair.names)) if len(found) > 1 else ""
        title += f" on {pair.report.cpu.name}" if title and pair.report.cpu else ""
        own, left = left[: len(groups)], left[len(groups) :]
        blocks = (*_specs(pair), *_table(pair, groups, own), *_lists(pair, groups))
        yield Section(f"changes-{at}", title, blocks)
        yield from _cycles(pair)


def _specs(pair: Pair) -> Iterator[Facts]:
    """Which kernels they are, where their versions are alike."""
    if pair.names[0] == "base":
        sides = pair.report.base, pair.compared.side
        yield Facts(tuple(zip(pair.names, (side.spec for side in sides), strict=True)))


def _shared(sizes: Sequence[int], left: int) -> list[int]:
    """How many lines each group has: an equal share, and what others do not need."""
    budgets = [min(size, left // len(sizes)) for size in sizes]
    for at, size in enumerate(sizes):
        budgets[at] += min(size - budgets[at], left - sum(budgets))
    return budgets


def _table(pair: Pair, groups: Groups, budgets: Sequence[int]) -> Iterator[Block]:
    """The operations with most change, then how many more there are."""
    rows, more = [], []
    for found, budget in zip(groups, budgets, strict=True):
        kept = found if len(found) <= budget else found[: max(0, budget - 1)]
        rows += [_row(one, one.costs) for one in kept if one.costs]
        if rest := found[len(kept) :]:
            named = " and ".join(dict.fromkeys(one.verdict.word for one in rest))
            ends = dict.fromkeys((change(rest[-1]), change(rest[0])))
            more.append(f"{len(rest)} more {named}: {' to '.join(ends)}")
    if not rows:
        return
    titles = ("operation", *pair.names, "change", "", _CAUSE)
    figures = (Column(title, "number") for title in titles[1:4])
    columns = (Column(titles[0], "name"), *figures, Column(""), Column(_CAUSE))
    widths = [max(map(len, texts)) for texts in zip(titles, *rows, strict=True)]
    room = max(len(_CAUSE), WIDTH - sum(widths[:-1]) - len(GAP) * (len(widths) - 1))
    cells = tuple((*map(Cell, row[:-1]), Cell(_cut(row[-1], room))) for row in rows)
    yield Table("changes", "Instructions an iteration", columns, cells)
    if more:
        yield Items(tuple(more))


def _row(one: OperationEffect, costs: Costs) -> tuple[str, ...]:
    sides = (str(round(side.value)) for side in (costs.insns.base, costs.insns.other))
    return _cut(one.name, _LONGEST_NAME), *sides, change(one), _certainty(costs), cause_of(one)


def _certainty(costs: Costs) -> str:
    """How far the change may be off, in per cent of the base."""
    effect, base = costs.insns.effect, costs.insns.base.value
    if effect.n < 2:
        return "n=1"
    if effect.exact:
        return "exact"
    if not base:
        return ""
    hundredths = math.ceil(100 * 100 * effect.half_width / abs(base))
    return f"+-{hundredths / 100:.3g}%" if hundredths < 10000 else "+-100%+"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 2]}.."


def _lists(pair: Pair, groups: Groups) -> Iterator[Items]:
    """What is known of operations besides their rows."""
    shown = [one for found in groups for one in found]
    traded = "instructions were traded for bytes of string operations; --cpu CPU weighs them"
    mixed = [one for one in pair.of(Word.MIXED) if pair.matters(one)]
    early = [one for one in pair.of(*Word) if one.verdict.reason == SO_FAR and one not in shown]
    named = [*shown, *early]
    small = [one for one in pair.of(*FIRM) if not pair.matters(one) and one not in named]
    same = [one for one in pair.of(Word.SAME) if one not in named]
    vary = [one for one in same if within(one)]
    texts = [_list("run further", early), _list("mixed", mixed, traded, change)]
    texts += [_list(one.verdict.word, [one], one.verdict.reason) for one in pair.of(*_DEPENDS)]
    alike: dict[tuple[Word, str], list[OperationEffect]] = {}
    for one in pair.of(Word.UNRESOLVED, Word.NOT_COMPARABLE):
        if one in early:
            continue
        alike.setdefault((one.verdict.word, one.verdict.reason), []).append(one)
    texts += [_list(word, found, reason) for (word, reason), found in alike.items()]
    bound = about(max(map(within, vary), default=Fraction(0)))
    texts += [
        _list(f"less than {percent(pair.least)}", small),
        _list("same", [one for one in same if one not in vary]),
        _list(f"same within {bound}", vary),
        _unlike(pair),
    ]
    if listed := tuple(filter(None, texts)):
        yield Items(listed)


def _unlike(pair: Pair) -> str:
    """In a line how far figures are from the default CPU's: where none is named."""
    count = len({one.name for one in pair.compared.unlike})
    if not count:
        return ""
    bases = {one.name: float(one.base.value) for one in pair.of(*Word) if one.base}
    parts = {
        one.region: max(one.base.most, one.other.most) / bases[one.region]
        for one in pair.compared.gains
        if bases.get(one.region)
    }
    most = max(parts, key=lambda name: parts[name], default="")
    bound = f"; by their bounds {most} most: {about(Fraction(parts[most]))}" if most else ""
    return f"not as on a real CPU: {words.counted(count, 'path')}{_cut(bound, _BOUND)}"


def _list(
    title: str,
    operations: Sequence[OperationEffect],
    note: str = "",
    figure: Callable[[OperationEffect], str] | None = None,
) -> str:
    names = ", ".join(f"{one.name} {figure(one)}" if figure else one.name for one in operations)
    return f"{title}: {names}" + (f" ({note})" if note else "") if operations else ""


def _cycles(pair: Pair) -> Iterator[Section]:
    """The verdicts on model cycles, a line for each word."""
    cycles, cpu = pair.compared.cycles, pair.report.cpu
    if cycles is None or cpu is None:
        return
    order = dict.fromkeys((Word.SLOWER, Word.FASTER, Word.PLACEMENT_ONLY, *OPEN, *Word))
    found = {word: [one for one in cycles.effects if one.verdict.word is word] for word in order}
    texts = [f"{word} ({len(of)}): {_regions(of, word)}" for word, of in found.items() if of]
    if names := dict.fromkeys(one.name for one in cycles.unlike):
        texts += [f"not as on a real {cpu.name}: {', '.join(names)}"]
    title = f"Model cycles on {cpu.name}: means over random layouts of each kernel"
    yield Section("cycles", title, (Items(tuple(texts)),))


def _regions(found: Sequence[PlacementEffect], word: Word) -> str:
    names = [one.region + _size(one, word) for one in found]
    more = f" and {len(names) - 2 * _NAMED} more" if len(names) > 2 * _NAMED else ""
    return ", ".join(names[: 2 * _NAMED]) + more


def _size(effect: PlacementEffect, word: Word) -> str:
    if word is Word.PLACEMENT_ONLY:
        return f" (as these two are linked: {in_per_cent(effect.shipped.relative)})"
    return f" {in_per_cent(effect.relative)}" if word in FIRM else ""


def _first_of(warnings: Sequence[str]) -> tuple[str, ...]:
    texts = tuple(dict.fromkeys(warnings))
    more = (f"{len(texts) - _NAMED} more: --all",) if len(texts) > _NAMED else ()
    return (*texts[:_NAMED], *more)


def _with_accounts(screen: Document, pairs: Sequence[Pair]) -> Document:
    """The functions of what changed most, where there is still room for all of an account."""
    for pair in pairs:
        for one in (one for word in LISTED for one in pair.of(word)):
            if one.costs is None or not pair.matters(one):
                continue
            table = functions_table(one.name, one.name, one.costs.insns, one.functions, _FUNCTIONS)
            table = msgspec.structs.replace(table, caption="")
            account = Section(one.name, f"{one.name}, instructions an iteration", (table,))
            more = msgspec.structs.replace(screen, sections=(*screen.sections, account))
            if _excess(more) > 0:
                return screen
            screen = more
    return screen
