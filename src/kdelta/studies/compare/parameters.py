# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether boot parameters that two kernels differ in had an effect, by what their guests show."""

from collections.abc import Collection, Sequence

import msgspec

from kdelta.infer.effects.effects import Effects
from kdelta.infer.effects.estimate import is_seen
from kdelta.report import words
from kdelta.report.names import own_parameters
from kdelta.spec.parameters import parameter
from kdelta.studies.compare.boot_messages import differing_messages

_DOUBT = " may be without effect on "
"""In a warning that a kernel does not say whether it knows a parameter."""

_NOTHING = (
    "nothing that was looked at differs, neither an executed function nor what the guests show of "
    "their CPU and mitigations{}. It may be this kernel's default; these operations may not come "
    "to it; or this guest may lack what it is for. That it costs nothing elsewhere is not shown"
)
_NOR_LOGGED = " nor what the kernels log as they boot"

_ONLY_LOGGED = (
    "no executed function differs, nor does what the guests show of their CPU and mitigations. "
    "That it costs nothing elsewhere is not shown"
)

_IN_HARDWARE = "What the CPU itself does otherwise for that is in no figure"

_MOST_SHOWN = 2

_LISTS = ("flags", "Features", "bugs", "isa", "vmx flags")
"""Of /proc/cpuinfo: sets of words."""


class GuestWords(msgspec.Struct, frozen=True):
    """What the guests of one kernel say.

    shown  of their CPU and mitigations
    logs   what the kernel logged as it booted, of each run of which that is known
    """

    shown: str
    logs: tuple[str, ...] = ()


def warnings_on_parameters(
    specs: tuple[str, str], effects: Effects, said: tuple[GuestWords, GuestWords]
) -> tuple[str, ...]:
    """Return the warnings of a comparison, with what is known of boot parameters.

    specs: those of both kernels; said: by the guests of each. Where nothing but parameters differs,
    an executed function or what guests say that differs is their effect, so no doubt is left of a
    single one; of several, any may be without effect. What they show of the CPU is for the CPU to
    do, which is not counted, and what a kernel logs may only acknowledge the parameter: these are
    warnings, and so is it where nothing differs.
    """
    ours, theirs = own_parameters(*specs)
    if not (ours or theirs) or not any(one.costs for one in effects.operations):
        return effects.warnings
    sides = _side_names(ours, theirs)
    several = len({parameter(word)[0] for word in (*ours, *theirs)}) > 1
    certain = [text for text in effects.warnings if several or _DOUBT not in text]
    lasting = _lasting(said[0].shown), _lasting(said[1].shown)
    shown = _shown_otherwise(*lasting, sides)
    base, other = differing_messages(said[0].logs, said[1].logs, (*ours, *theirs))
    known = {text for one in lasting for text in one.values()}
    logged = _logged_otherwise(_without(base, known), _without(other, known), sides)
    texts = [f"the guests show {shown}. {_IN_HARDWARE}"] if shown else []
    texts += [f"as they boot, the kernels log {logged}"] if logged else []
    if not (_differ(effects) or shown):
        has_logs = all(one.logs for one in said)
        nothing = _NOTHING.format(_NOR_LOGGED if has_logs else "")
        texts.append(_ONLY_LOGGED if logged else nothing)
    if texts:
        certain.append(f"{' '.join((*ours, *theirs))}: {'. '.join(_sentences(texts))}")
    return tuple(certain)


def _sentences(texts: Sequence[str]) -> list[str]:
    """The first one continues a line."""
    return [*texts[:1], *(text[:1].upper() + text[1:] for text in texts[1:])]


def _side_names(base: Sequence[str], other: Sequence[str]) -> tuple[str, str]:
    """What either kernel is called, by parameters of its own."""
    if base and other:
        return f"with {' '.join(base)}", f"with {' '.join(other)}"
    return ("without", "with it") if other else ("with it", "without")


def _without(messages: Sequence[str], known: Collection[str]) -> list[str]:
    """The messages that report no more than guests show anyway."""
    return [one for one in messages if one.partition(": ")[2] not in known]


def _logged_otherwise(base: Sequence[str], other: Sequence[str], sides: tuple[str, str]) -> str:
    """The messages that only one of two kernels logs, in words; empty where there are none."""
    both = [(other, sides[1]), (base, sides[0])]
    most = 1 if base and other else _MOST_SHOWN
    named = [(found[:most], side) for found, side in both if found]
    texts = [f"{words.listed([repr(one) for one in found])} {side}" for found, side in named]
    more = len(base) + len(other) - sum(len(found) for found, _ in named)
    return " and ".join(texts) + (f"; {more} more on one side only" if more else "")


def _differ(effects: Effects) -> bool:
    """Whether any function of an operation executes more or fewer instructions, by all runs."""
    found = (one.cost.effect for operation in effects.operations for one in operation.functions)
    return any(map(is_seen, found))


def _lasting(shown: str) -> dict[str, str]:
    """What a guest shows by its name, without what it measured: how fast its CPU is."""
    parts = (line.partition(":") for line in shown.splitlines())
    named = {name.strip(): text.strip() for name, _, text in parts}
    return {name: text for name, text in named.items() if name not in ("cpu MHz", "bogomips")}


def _shown_otherwise(base: dict[str, str], other: dict[str, str], sides: tuple[str, str]) -> str:
    """What two guests show that differs, in words; empty where nothing does."""
    names = [name for name in {**base, **other} if base.get(name) != other.get(name)]
    texts = [_otherwise(name, base.get(name, ""), other.get(name, ""), sides) for name in names]
    more = len(texts) - _MOST_SHOWN
    return "; ".join([*texts[:_MOST_SHOWN], f"{more} more"] if more > 1 else texts)


def _otherwise(name: str, base: str, other: str, named: tuple[str, str]) -> str:
    """How one thing is shown; of lists of flags, those that are on one side only."""
    if name not in _LISTS:
        return f"{name} as {other!r} {named[1]} and {base!r} {named[0]}"
    sides = set(base.split()), set(other.split())
    less, more = (sorted(one - two) for one, two in (sides, sides[::-1]))
    changed = " ".join([*(f"+{one}" for one in more), *(f"-{one}" for one in less)])
    return f"{changed} in {name} {named[1]}"
