# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls, source lines and instructions as text, of one run and of two."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from kdelta.infer.profiles.annotate import AnnotatedFunction, Insn, InstructionPair, plain_text
from kdelta.infer.profiles.calls import (
    TASK,
    CallChange,
    Calls,
    Shown,
    ShownChange,
    shown_calls,
    shown_changes,
)
from kdelta.infer.profiles.diff import both_ends
from kdelta.infer.profiles.matching import Key
from kdelta.infer.profiles.source import LineChange, SourceLine
from kdelta.report import figures
from kdelta.report.lines import WIDTH, function_name, wrapped
from kdelta.spec.errors import LabError
from kdelta.studies.profile.model import LineCost
from kdelta.studies.profile.parts import INSNS, PERCENT, named_line, share

_CALLS = 8
_OWN = 12
_BOTH = 11
_COUNT = 11

_ADDRESS = 18

_SIDE_COUNT = 9

_SIDE = (WIDTH - 1 - 2 * (_SIDE_COUNT + 1) - 2) // 2

_NONE = SourceLine("", "", 0, "")


def calls_lines(calls: Calls, part: float) -> list[str]:
    """From the top down, cut below that part of the whole."""
    title = f"calls, from the top, cut below {100 * part:g}% of what is shown"
    return ["", title, *_tree(calls, part)]


def callers_lines(callers: Sequence[tuple[Key, Calls]], part: float) -> list[str]:
    """Each function with those that called it, from it up."""
    lines = []
    for key, calls in callers:
        name = function_name(key[1], key[0])
        title = f"callers of {name}, cut below {100 * part:g}% of what it costs"
        lines += ["", *([title] if calls.total else [f"no call was seen of {name}"])]
        lines += _tree(calls, part, own=False) if calls.total else []
    return lines


def _indented(one: Shown | ShownChange, name: str) -> str:
    """A name with a dash if it is one of several below another, and else right below that."""
    return f"  {'  ' * one.depth}{'- ' if one.is_branch else '  '}{name}"


def node_name(key: Key) -> str:
    """A function, or what stands above functions."""
    return f"[{key[1]}]" if key[0] == TASK else function_name(key[1], key[0])


def _tree(calls: Calls, part: float, *, own: bool = True) -> list[str]:
    whole = calls.total
    head = f"{'own':>{PERCENT}}" if own else ""
    lines = [f"{'inclusive':>{INSNS}}{'%':>{PERCENT}}{head}{'calls':>{_CALLS}}  function"]
    for one in shown_calls(calls, part):
        # A figure that stands for several nodes has no calls of its own.
        name = f"({one.cut} more)" if one.cut else node_name(one.key)
        cells = f"{one.inclusive:>{INSNS}}{share(one.inclusive, whole):>{PERCENT}}"
        if own:
            cells += f"{share(one.own, whole) if one.own else '-':>{PERCENT}}"
        times = figures.short(Fraction(one.calls)) if one.calls else "-"
        lines += named_line(f"{cells}{times:>{_CALLS}}", _indented(one, name))
    return lines


def changed_calls_lines(changes: Sequence[CallChange], part: float) -> list[str]:
    """The paths that brought what was added or removed, cut where little changed."""
    shown = list(shown_changes(changes, part))
    if not shown:
        return ["", "no path of calls changed"]
    lines = ["", f"paths of calls, cut where less than {100 * part:g}% of all changes is"]
    heads = f"{'added':>{INSNS}}{'own':>{_OWN}}{'calls in A':>{_BOTH}}{'in B':>{_BOTH}}"
    lines.append(f"{heads}  function")
    for one in shown:
        name = f"({one.cut} more)" if one.cut else node_name(one.key)
        own = str(one.added_own) if one.added_own else "-"
        calls = "".join(
            f"{figures.short(Fraction(count)) if count else '-':>{_BOTH}}"
            for count in (one.a_calls, one.b_calls)
        )
        lines += named_line(f"{one.added:>{INSNS}}{own:>{_OWN}}{calls}", _indented(one, name))
    return lines


def source_lines(lines: Sequence[LineCost], limit: int) -> list[str]:
    """Return the lines that cost most, which come first, and others, which add up to the whole."""
    whole = sum(line.insns for line in lines)
    known = [line for line in lines if line.source.is_known]
    named = known if len(known) <= limit + 1 else known[:limit]
    rest = [line.insns for line in known[len(named) :]]
    unknown = whole - sum(line.insns for line in known)
    rows = [(line.insns, _line(line.source)) for line in named]
    rows += [(sum(rest), f"other lines ({len(rest)})")] if rest else []
    rows += [(unknown, "of which no line is known")] if unknown else []
    if sum(count for count, _ in rows) != whole:
        raise LabError("the source lines do not add up", "this is an error of kdelta")
    shown = ["", "source lines", f"{'insns':>{INSNS}}{'%':>{PERCENT}}  line"]
    said_of = [line.text for line in named] + [""] * (len(rows) - len(named))
    for (count, name), said in zip(rows, said_of, strict=True):
        shown += named_line(f"{count:>{INSNS}}{share(count, whole):>{PERCENT}}", f"  {name}")
        shown += [f"{'':>{INSNS + PERCENT}}    {said}"[:WIDTH]] if said else []
    return [*shown, f"{whole:>{INSNS}}{share(whole, whole):>{PERCENT}}  total"]


def _line(line: SourceLine) -> str:
    return function_name(f"{line.file}:{line.line} {line.function}", line.origin)


def changed_lines(changes: Sequence[LineChange], limit: int) -> list[str]:
    """What was added by line, most added first, and the total, which they add up to."""
    known = [one for one in changes if (one.b_line or one.a_line or _NONE).is_known]
    changed = [one for one in known if one.added]
    kept = both_ends([one.added for one in changed], limit)
    rows = [(one.added, _changed(one), one.text) for i, one in enumerate(changed) if i in kept]
    rest = [one for index, one in enumerate(changed) if index not in kept]
    groups = {
        "more": [one.added for one in rest if one.added > 0],
        "less": [one.added for one in rest if one.added < 0],
    }
    between = [
        (sum(added), f"other lines, {word} ({len(added)})", "")
        for word, added in groups.items()
        if added
    ]
    total = sum(one.added for one in changes)
    unknown = total - sum(one.added for one in known)
    if any(one.added for one in changes if not (one.b_line or one.a_line or _NONE).is_known):
        between.append((unknown, "of which no line is known", ""))
    at = sum(row[0] > 0 for row in rows)
    rows[at:at] = between
    if sum(row[0] for row in rows) != total:
        raise LabError("the source lines do not add up", "this is an error of kdelta")
    shown = ["", "source lines", f"{'added':>{INSNS}}  line (of B, or of A where B has it not)"]
    for added, name, text in rows:
        shown += named_line(f"{added:>{INSNS}}", f"  {name}")
        shown += [f"{'':>{INSNS}}    {text}"[:WIDTH]] if text else []
    return [*shown, f"{total:>{INSNS}}  total"]


def _changed(one: LineChange) -> str:
    line = one.b_line or one.a_line or _NONE
    side = "" if one.a_line and one.b_line else " (only in B)" if one.b_line else " (only in A)"
    return _line(line) + side


def annotated_lines(
    function: AnnotatedFunction, places: Mapping[tuple[str, int], str] = {}
) -> list[str]:
    """A function instruction by instruction, with the lines of its source where they begin."""
    name = function_name(function.key[1], function.key[0])
    insns = figures.number(Fraction(function.total))
    lines = ["", f"{name}: {insns} instructions executed"]
    if not function.insns:
        return lines
    lines.append(f"{'executed':>{_COUNT}}  {'address':<{_ADDRESS}} instruction")
    place, end = None, function.insns[0].address
    for insn in function.insns:
        if insn.address > end:
            lines.append(f"{'':>{_COUNT}}  ({insn.address - end} bytes never executed)")
        if insn.place and insn.place != place:
            where = f"{insn.place[0]}:{insn.place[1]}"
            lines.append(f"{'':>{_COUNT}}  {where}  {places.get(insn.place, '')}".rstrip())
        place, end = insn.place or place, insn.address + insn.size
        text = plain_text(insn.text, function.key[1])
        lines.append(f"{insn.count:>{_COUNT}}  {insn.address:<{_ADDRESS}x} {text}")
    return lines


def side_by_side_lines(
    name: str, pairs: Sequence[InstructionPair], names: tuple[str, str]
) -> list[str]:
    """Two disassemblies side by side: how often, and what; `names` are the function's symbols.
    A mark between them is | where they differ, < and > where one has no partner.
    """
    a = sum(pair.a.count for pair in pairs if pair.a)
    b = sum(pair.b.count for pair in pairs if pair.b)
    lines = [
        "",
        f"{name}: {a} instructions executed in A, {b} in B, {b - a:+}",
        f"{_cell(None, 'A', '')}   {_cell(None, 'B', '')}".rstrip(),
    ]
    for pair in pairs:
        left, right = (_side(insn, of) for insn, of in zip((pair.a, pair.b), names, strict=True))
        mark = "<" if pair.b is None else ">" if pair.a is None else " " if pair.alike else "|"
        lines.append(f"{left} {mark} {right}".rstrip())
    return lines


def _side(insn: Insn | None, function: str) -> str:
    return _cell(insn.count, "", plain_text(insn.text, function)) if insn else _cell(None, "", "")


def _cell(count: int | None, head: str, text: str) -> str:
    figure = head if count is None else str(count)
    return f"{figure:>{_SIDE_COUNT}} {text[:_SIDE]:<{_SIDE}}"


def no_lines(origins: Sequence[str]) -> list[str]:
    """That of these nothing is known by line."""
    if not origins:
        return []
    return ["", *wrapped(f"No debug info, so no source lines: {', '.join(origins)}.", "", "")]
