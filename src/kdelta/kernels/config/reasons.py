# SPDX-License-Identifier: GPL-2.0-or-later
"""Why kbuild did not grant an option as it was asked for, derived from the tree's Kconfig files."""

import difflib
from collections.abc import Collection, Mapping, Sequence

import msgspec

from kdelta.kernels.config.kconfig import (
    OFF,
    PREFIX,
    in_words,
    is_number,
    line_of,
    same_value,
    value_of,
)
from kdelta.kernels.config.kconfig_expr import evaluate, parse_expr, value_text
from kdelta.kernels.config.kconfig_files import Kconfig, KconfigEntry
from kdelta.kernels.config.obstacles import Ask, Obstacles, few
from kdelta.spec.change import ALLOW_UNKNOWN

_MOST_LINES = 20
_KINDS = {"bool": "on or off", "int": "a number", "hex": "a number in hex", "string": "a text"}
_ON = ("y", "m")


class Refused(msgspec.Struct, frozen=True):
    """An option that was asked for with one value and got another. `reason` is a clause, empty
    when none could be found.
    """

    option: str
    asked: str
    granted: str
    reason: str = ""

    def __str__(self) -> str:
        asked = line_of(self.option, self.asked)
        said = f"{asked} was not granted (it is {in_words(self.granted)})"
        return f"{said}: {self.reason}" if self.reason else said


def refusal_text(found: Sequence[Refused], unknown: Collection[str] = ()) -> str:
    """Return all that was refused, in words: one option a line where they are several. unknown:
    options that the tree does not have, which are named at once.
    """
    unknown = frozenset(unknown)
    strangers = [one.option for one in found if one.option in unknown]
    if len(strangers) > 1:
        others = [one for one in found if one.option not in unknown]
        names = ", ".join(strangers[:_MOST_LINES])
        if (more := len(strangers) - _MOST_LINES) > 0:
            names += f" and {more} more"
        line = f"this tree has no such options: {names} (+{ALLOW_UNKNOWN} leaves them out)"
        return "\n".join([line, *([refusal_text(others)] if others else [])])
    if len(found) == 1:
        return str(found[0])
    lines = [f"{len(found)} options were not granted:", *(f"  {one}" for one in found)]
    if (more := len(found) - _MOST_LINES) > 0:
        lines[_MOST_LINES + 1 :] = [f"  and {more} more"]
    return "\n".join(lines)


def _no_answer(_name: str) -> str:
    return ""


def refused(
    asked: Mapping[str, str], granted: Mapping[str, str], kconfig: Kconfig, ask: Ask = _no_answer
) -> tuple[Refused, ...]:
    """Return the options that are not as they were asked for, in the order asked.

    A member of a choice is not refused where another was asked for later.
    """
    places = {option: at for at, option in enumerate(asked)}
    found: list[Refused] = []
    for at, (option, value) in enumerate(asked.items()):
        got = value_of(granted, option)
        members = {PREFIX + name for name in kconfig.choice_of(option.removeprefix(PREFIX))}
        others = (places.get(one, -1) > at and asked[one] == "y" for one in members)
        if same_value(value, got) or (value == "y" and any(others)):
            continue
        # No more are named, and looking for near names takes long.
        many = len(found) >= _MOST_LINES and option.removeprefix(PREFIX) not in kconfig.entries
        reason = "" if many else reason_for(option, value, granted, kconfig, ask)
        found.append(Refused(option, value, got, reason))
    return tuple(found)


def reason_for(
    option: str,
    asked: str,
    granted: Mapping[str, str],
    kconfig: Kconfig,
    ask: Ask = _no_answer,
) -> str:
    """Why that option is not as asked in the granted config, as a clause; empty if unknown."""
    name = option.removeprefix(PREFIX)
    if not (entries := kconfig.entries.get(name)):
        return _no_such(name, kconfig)
    if said := _wrong_kind(kconfig.kind(name), asked):
        return said
    obstacles = Obstacles(granted, kconfig, ask)
    if asked == OFF or (asked == "m" and value_of(granted, option) == "y"):
        return _not_off(name, asked, granted, kconfig, obstacles)
    return _not_on(entries, asked, granted, kconfig, obstacles)


def _no_such(name: str, kconfig: Kconfig) -> str:
    near = difflib.get_close_matches(name, kconfig.entries, n=1, cutoff=0.85)
    other = f"; {PREFIX}{near[0]} is one" if near else ""
    return f"this tree has no such option for {kconfig.arch}{other}"


def _wrong_kind(kind: str, asked: str) -> str:
    switch = asked in (*_ON, OFF)
    if kind == "tristate" and not switch:
        return "it is on, a module or off: y, m or n"
    if kind == "bool" and asked == "m":
        return "it is on or off, it cannot be a module"
    right = {
        "bool": switch,
        "int": is_number(asked),
        "hex": is_number(asked),
        "string": asked.startswith('"'),
    }.get(kind, True)
    return "" if right else f"its value is {_KINDS[kind]}"


def _not_off(
    name: str, asked: str, granted: Mapping[str, str], kconfig: Kconfig, obstacles: Obstacles
) -> str:
    if selecting := obstacles.selecting(name):
        return selecting
    if asked == "m" and value_of(granted, "CONFIG_MODULES") == OFF:
        return "CONFIG_MODULES is off"
    if kconfig.choice_of(name):
        return "one option of its choice must be on, and no other could be"
    return _not_asked(kconfig.entries[name], obstacles)


def _not_on(
    entries: list[KconfigEntry],
    asked: str,
    granted: Mapping[str, str],
    kconfig: Kconfig,
    obstacles: Obstacles,
) -> str:
    name = entries[0].name
    missing = min((obstacles.unmet(entry.depends()) for entry in entries), key=len)
    if missing:
        return f"its dependencies are not met: {', '.join(missing)}"
    if said := _not_asked(entries, obstacles):
        others = [f"{PREFIX}{entry.name}" for entry, _ in kconfig.selectors(name)]
        return f"{said}; {few(others, 'or')} would select it" if others else said
    if asked not in _ON:
        return _range(entries, granted)
    chosen = [
        PREFIX + member
        for member in kconfig.choice_of(name)
        if value_of(granted, PREFIX + member) == "y"
    ]
    return f"{few(chosen)} was chosen instead" if chosen else ""


def _range(entries: list[KconfigEntry], granted: Mapping[str, str]) -> str:
    for item in (item for entry in entries for item in entry.ranges):
        if evaluate(parse_expr(item.condition or "y"), granted) != 0:
            ends = [value_text(parse_expr(end), granted) for end in item.value.split()]
            return f"it has to be within {' to '.join(ends)}"
    return ""


def _not_asked(entries: list[KconfigEntry], obstacles: Obstacles) -> str:
    """Why it cannot be set by hand; empty if one can."""
    asking = [entry for entry in entries if entry.prompt is not None]
    if not asking:
        return "it cannot be set by hand, it follows from other options"
    missing = min((obstacles.unmet(entry.asked_if()) for entry in asking), key=len)
    return f"it cannot be set by hand while {', '.join(missing)}" if missing else ""
