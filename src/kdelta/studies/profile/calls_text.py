# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees of calls as text: who called whom, and what that cost."""

from collections.abc import Sequence
from fractions import Fraction

from kdelta.infer.profiles.calls import (
    TASK,
    CallChange,
    Calls,
    Shown,
    ShownChange,
    shown_calls,
    shown_changes,
)
from kdelta.infer.profiles.matching import Key
from kdelta.report import figures
from kdelta.report.lines import function_name
from kdelta.studies.profile.parts import INSNS, PERCENT, named_line, percent

_CALLS = 8
_OWN = 12
_BOTH = 11


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
        cells = f"{one.inclusive:>{INSNS}}{percent(one.inclusive, whole):>{PERCENT}}"
        if own:
            cells += f"{percent(one.own, whole) if one.own else '-':>{PERCENT}}"
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
