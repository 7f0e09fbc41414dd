# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen of a comparison: the answer in sentences, then what changed, a line each."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.by_code import by_code
from kdelta.infer.effects.chance import NO_CODE, SO_FAR
from kdelta.infer.effects.effects import FIRM, OperationEffect, Word
from kdelta.infer.effects.functions import FunctionEffect
from kdelta.report import figures, words
from kdelta.report.document import (
    Answer,
    Block,
    Document,
    Facts,
    Items,
    Prose,
    Section,
    with_titles,
)
from kdelta.report.lines import merged
from kdelta.report.names import base_spec
from kdelta.report.text import text_of
from kdelta.studies.compare.answer import (
    LISTED,
    Pair,
    about,
    change,
    path_text,
    percent,
    within,
)
from kdelta.studies.compare.causes import is_shown, others_of
from kdelta.studies.compare.columns import operations_table, screen_columns, why_open
from kdelta.studies.compare.functions import LEAST_SHOWN, functions_table, sharing
from kdelta.studies.compare.variants import variants_section

LINES = 50
"""Of one screen."""

_NAMED = 3
_FUNCTIONS = 10
_LEAST_ROWS = 3
_FEW = 5
_NO_BOUND = "how much they cost there is not known"
_OTHERS = 4
_NO_CONFIG = "; their configs are not both known"
_DEPENDS = (Word.NOT_STEADY, Word.DEPENDS_ON_STATE, Word.DEPENDS_ON_SPEED)
_COUNTED = "Instructions of the measured tasks, kernel and user; not time."
_MORE = "All figures and functions: kdelta report --all, or --output FILE.html."

Groups = tuple[list[OperationEffect], ...]
"""The operations with a row: what is slower, what is faster, and what changed by little."""


def first_screen(document: Document, pairs: Sequence[Pair]) -> Document:
    """Return the first screen of a comparison's document: at most LINES lines of text where there
    is one pair of kernels and nothing failed.
    """
    if len(pairs) > 1 and all(pair.report is pairs[0].report for pair in pairs):
        return _of_variants(document, pairs)
    found = [(pair, _groups(pair)) for pair in pairs]
    sizes = [len(group) for _, groups in found for group in groups]
    document = _begun(document, pairs)
    cpus = [one for one in document.sections if one.id == "cpus"]
    least, room = _LEAST_ROWS * len(sizes), sum(sizes)
    while True:
        tables = _sections(found, _shared(sizes, room))
        screen = msgspec.structs.replace(document, sections=(*tables, *cpus))
        excess = _excess(screen)
        if excess <= 0 or room <= least:
            return _with_accounts(screen, pairs)
        room = max(least, room - excess)


def _begun(document: Document, pairs: Sequence[Pair]) -> Document:
    """The document with an answer in sentences for each pair, and without what is no first look."""
    return msgspec.structs.replace(
        document,
        answers=tuple(Answer((_answer(pair, is_first=pair is pairs[0]),)) for pair in pairs),
        facts=(),
        environment=(Section("more", "", (Prose(_footer(pairs)),)),),
        notes=(),
        warnings=_first_of(document.warnings),
    )


def _footer(pairs: Sequence[Pair]) -> str:
    """Return what the figures are, by how many runs they are known, and where there is more."""
    effects = [one.costs.insns.effect for pair in pairs for one in pair.of(*Word) if one.costs]
    runs = {effect.n for effect in effects}
    if max(runs, default=0) < 2:
        return f"{_COUNTED} n=1: one run a kernel says nothing of how far it is off. {_MORE}"
    more = " or more" if len(runs) > 1 else ""
    known = f"by all runs, {min(runs)}{more} a kernel"
    far = f"+-: how far starting states move the change, in per cent of the base, {known}."
    if any(effect.paired and effect.exact for effect in effects):
        far += " n of n: it is equal in so many pairs of runs from the same state."
    return f"{_COUNTED} {far} {_MORE}"


def _of_variants(document: Document, pairs: Sequence[Pair]) -> Document:
    """One table with a column a kernel, and what is known of model cycles."""
    measured = [section for pair in pairs for section in _measured(pair)]
    return msgspec.structs.replace(
        _begun(document, pairs), sections=(variants_section(pairs), *measured)
    )


def _excess(document: Document) -> int:
    """How many lines it has too many."""
    return text_of(document).count("\n") - LINES


def _groups(pair: Pair) -> Groups:
    """What changed by less has rows where that is little; if nothing else has, all operations."""
    rows = (pair.of(word) for word in LISTED)
    shown = tuple([one for one in found if pair.matters(one)] for found in rows)
    open_yet = [one for one in pair.of(Word.UNRESOLVED) if one.costs]
    unknown = [*open_yet, *filter(by_code, pair.of(Word.SAME))]
    if not any(shown):
        return ([one for one in pair.of(*Word) if one.costs],)
    others = [one for one in pair.of(Word.SAME, *FIRM) if not pair.matters(one)]
    others = [one for one in others if one not in unknown]
    return (*shown, unknown, others) if len(others) <= _FEW else (*shown, unknown)


def _answer(pair: Pair, *, is_first: bool) -> str:
    """What a reader wants to know, in sentences; only the first one names what was counted."""
    if not any(one.costs for one in pair.of(*Word)):
        return f"{pair.title}: nothing to compare, no operation succeeded on both sides."
    text = path_text(pair) if is_first else path_text(pair, "")
    why = {Word.PLACEMENT_ONLY: " (where the linker put the code, not what it does)"}
    for one, _ in pair.joined:
        found = Counter(effect.word for effect in one.effects if effect.base)
        parts = [f"{found[word]} {word}{why.get(word, '')}" for word in Word if found[word]]
        text += f" In {one.measure}: {', '.join(parts)}." if parts else ""
    return text


def _sections(found: Sequence[tuple[Pair, Groups]], budgets: Sequence[int]) -> Iterator[Section]:
    """Each pair's rows, as many of each group as its budget says, and what else is known."""
    left = list(budgets)
    for at, (pair, groups) in enumerate(found):
        title = pair.title if len(found) > 1 else ""
        title += f" on {pair.report.cpu.name}" if title and pair.report.cpu else ""
        own, left = left[: len(groups)], left[len(groups) :]
        blocks = (*_specs(pair), *_table(pair, groups, own), *_lists(pair, groups))
        yield Section(f"changes-{at}", title, blocks)
        yield from _measured(pair)


def _specs(pair: Pair) -> Iterator[Facts]:
    """Yield in what the kernels differ, and which one it is if that is no other one."""
    bases = dict.fromkeys(base_spec(side) for side in (pair.report.base, pair.compared.side))
    unknown = _NO_CONFIG if pair.compared.config is None and len(bases) > 1 else ""
    facts = [("differ in", pair.differ_in + unknown)]
    yield Facts((*facts, *((("kernel", *bases),) if len(bases) == 1 else ())))


def _shared(sizes: Sequence[int], left: int) -> list[int]:
    """How many lines each group has: an equal share, and what others do not need."""
    budgets = [min(size, left // len(sizes)) for size in sizes]
    for at, size in enumerate(sizes):
        budgets[at] += min(size - budgets[at], left - sum(budgets))
    return budgets


def _table(pair: Pair, groups: Groups, budgets: Sequence[int]) -> Iterator[Block]:
    """The operations with most change, then how many more there are."""
    rows: list[OperationEffect] = []
    more = []
    for found, budget in zip(groups, budgets, strict=True):
        kept = found if len(found) <= budget else found[: max(0, budget - 1)]
        rows += [one for one in kept if one.costs]
        if rest := found[len(kept) :]:
            named = " and ".join(dict.fromkeys(one.verdict.word for one in rest))
            ends = dict.fromkeys((change(rest[-1]), change(rest[0])))
            more.append(f"{len(rest)} more {named}: {' to '.join(ends)}")
    if not rows:
        return
    columns = screen_columns(pair)
    yield operations_table("changes", "Instructions an iteration", rows, columns)
    if more:
        yield Items(tuple(more))


def _lists(pair: Pair, groups: Groups) -> Iterator[Items]:
    """What is known of operations besides their rows."""
    shown = [one for found in groups for one in found]
    early = [one for one in pair.of(*Word) if one.verdict.reason == SO_FAR and one not in shown]
    named = [*shown, *early]
    small = [one for one in pair.of(*FIRM) if not pair.matters(one) and one not in named]
    every = [one for one in pair.of(Word.SAME) if one not in named]
    by_code = [one for one in every if one.verdict.reason == NO_CODE]
    same = [one for one in every if one not in by_code]
    vary = [one for one in same if within(one)]
    moved = [one for one in same if one not in vary and _moved(one)]
    texts = [_list("run further", early)]
    texts += [_list(one.verdict.word, [one], one.verdict.reason) for one in pair.of(*_DEPENDS)]
    alike: dict[tuple[Word, str], list[OperationEffect]] = {}
    for one in pair.of(Word.UNRESOLVED, Word.NOT_COMPARABLE):
        if one in early or (one in shown and why_open(one) == one.verdict.reason):
            continue
        alike.setdefault((one.verdict.word, one.verdict.reason), []).append(one)
    texts += [_list(word, found, reason) for (word, reason), found in alike.items()]
    bound = about(max(map(within, vary), default=Fraction(0)))
    texts += [
        _list(f"less than {percent(pair.least)}", small),
        _list("same", [one for one in same if one not in (*vary, *moved)]),
        _list("same in sum", moved, "", _moved_text),
        _list(f"same within {bound}", vary),
        _list("same", by_code, NO_CODE),
        *_others(pair),
        _unlike(pair),
    ]
    if listed := tuple(filter(None, texts)):
        yield Items(listed)


def _others(pair: Pair) -> Iterator[str]:
    """Yield the operations that leave more or less to other tasks, by a part that matters, decided
    or not; and those of which that is not known, but whose other tasks do more or less meanwhile.
    """
    found = [(one, text) for one in pair.of(*Word) if (text := others_of(one, pair.least))]
    found.sort(key=lambda row: _part_of_others(row[0]), reverse=True)
    for title, is_left in (("left to other tasks", True), ("other tasks meanwhile", False)):
        texts = [f"{one.name} {text}" for one, text in found if _has_left(one) is is_left]
        if texts:
            yield f"{title}, instructions: {words.some(texts, _OTHERS)}"


def _has_left(one: OperationEffect) -> bool:
    return bool(one.costs and one.costs.left)


def _part_of_others(one: OperationEffect) -> Fraction:
    assert one.costs
    return abs(one.costs.others.effect.value / one.costs.insns.base.value)


def _moved(one: OperationEffect) -> list[FunctionEffect]:
    """Return the functions of an operation that execute more, or fewer, the largest first."""
    moved = [
        found
        for found in one.functions
        if abs(found.cost.effect.value) >= LEAST_SHOWN and is_shown(found.cost.effect)
    ]
    return sorted(moved, key=lambda found: -abs(found.cost.effect.value))


def _moved_text(one: OperationEffect) -> str:
    """The function that moved most, where an operation is the same only in sum."""
    most = _moved(one)[0]
    return f"({figures.brief(most.cost.effect.value, 6)} {most.name})"


def _unlike(pair: Pair) -> str:
    """In a line how far figures are from the default CPU's: where none is named."""
    count = len({one.name for one in pair.compared.mismatches})
    if not count or any(form.joined for _, form in pair.measured):
        return ""
    bases = {one.name: float(one.base.value) for one in pair.of(*Word) if one.base}
    parts = {
        one.region: max(one.base.most, one.other.most) / bases[one.region]
        for one in pair.compared.gains
        if bases.get(one.region)
    }
    most = max(parts, key=lambda name: parts[name], default="")
    depends = any(one.regions for one in pair.compared.mismatches)
    bound = _NO_BOUND if depends else "their bound is 0"
    if most:
        bound = f"by their bounds {most} most: {about(Fraction(parts[most]))}"
    return f"not as on a real CPU: {words.counted(count, 'path')}; {bound}"


def _list(
    title: str,
    operations: Sequence[OperationEffect],
    note: str = "",
    figure: Callable[[OperationEffect], str] | None = None,
) -> str:
    names = ", ".join(f"{one.name} {figure(one)}" if figure else one.name for one in operations)
    return f"{title}: {names}" + (f" ({note})" if note else "") if operations else ""


def _measured(pair: Pair) -> Iterator[Section]:
    """Yield the verdicts of all measures besides the path, a line for each word."""
    for found, form in pair.measured:
        yield form.screen(found, pair.compared.mismatches)


def _first_of(warnings: Sequence[str]) -> tuple[str, ...]:
    texts = merged(warnings)
    more = (f"{len(texts) - _NAMED} more: --all",) if len(texts) > _NAMED else ()
    return (*texts[:_NAMED], *more)


def _with_accounts(screen: Document, pairs: Sequence[Pair]) -> Document:
    """The functions of what changed most, where there is still room for all of an account."""
    for pair in pairs:
        listed = [one for word in LISTED for one in pair.of(word) if pair.matters(one)]
        for one, *alike in sharing(listed):
            assert one.costs
            table = functions_table(one.name, one.name, one.costs.insns, one.functions, _FUNCTIONS)
            titles = dict(zip(("base", "other"), pair.names.columns, strict=True))
            table = with_titles(msgspec.structs.replace(table, caption=""), titles)
            others = f", as {', '.join(other.name for other in alike)}" if alike else ""
            title = f"{one.name}{others}, instructions an iteration"
            account = Section(one.name, title, (table,))
            more = msgspec.structs.replace(screen, sections=(*screen.sections, account))
            if _excess(more) > 0:
                return screen
            screen = more
    return screen
