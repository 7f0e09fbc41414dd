# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether boot parameters that two kernels differ in had an effect, by what their guests show."""

from kdelta.infer.effects.effects import Effects
from kdelta.infer.effects.estimate import is_seen
from kdelta.report.names import own_parameters

_DOUBT = " may be without effect on "
"""In a warning that a kernel does not say whether it knows a parameter."""

_NOTHING = (
    "nothing that was looked at differs, neither an executed function nor what the guests show of "
    "their CPU and mitigations. It may be this kernel's default; these operations may not come to "
    "it; or this guest may lack what it is for. That it costs nothing elsewhere is not shown"
)

_IN_HARDWARE = "What the CPU itself does otherwise for that is in no figure"

_MOST_SHOWN = 2

_LISTS = ("flags", "Features", "bugs", "isa", "vmx flags")
"""Of /proc/cpuinfo: sets of words."""


def warnings_on_parameters(
    specs: tuple[str, str], effects: Effects, shown: tuple[str, str]
) -> tuple[str, ...]:
    """Return the warnings of a comparison, with what is known of boot parameters.

    specs: those of both kernels. shown: what each guest showed of its CPU and mitigations. Where
    nothing but parameters differs, an executed function or what a guest shows that differs is their
    effect, so no doubt is left. What a guest shows is for the CPU to do, which is not counted: that
    is a warning, and so is it where nothing differs.
    """
    words = own_parameters(*specs)
    if not words or not any(one.costs for one in effects.operations):
        return effects.warnings
    certain = tuple(text for text in effects.warnings if _DOUBT not in text)
    if parted := _shown_otherwise(*map(_lasting, shown)):
        return (*certain, f"{' '.join(words)}: the guests show {parted}. {_IN_HARDWARE}")
    return certain if _differ(effects) else (*certain, f"{' '.join(words)}: {_NOTHING}")


def _differ(effects: Effects) -> bool:
    """Whether any function of an operation executes more or fewer instructions, by all runs."""
    found = (one.cost.effect for operation in effects.operations for one in operation.functions)
    return any(map(is_seen, found))


def _lasting(shown: str) -> dict[str, str]:
    """What a guest shows by its name, without what it measured: how fast its CPU is."""
    parts = (line.partition(":") for line in shown.splitlines())
    named = {name.strip(): text.strip() for name, _, text in parts}
    return {name: text for name, text in named.items() if name not in ("cpu MHz", "bogomips")}


def _shown_otherwise(base: dict[str, str], other: dict[str, str]) -> str:
    """What two guests show that differs, in words; empty where nothing does."""
    names = [name for name in {**base, **other} if base.get(name) != other.get(name)]
    texts = [_otherwise(name, base.get(name, ""), other.get(name, "")) for name in names]
    more = len(texts) - _MOST_SHOWN
    return "; ".join([*texts[:_MOST_SHOWN], f"{more} more"] if more > 1 else texts)


def _otherwise(name: str, base: str, other: str) -> str:
    """How one thing is shown; of lists of flags, those that are on one side only."""
    if name not in _LISTS:
        return f"{name} as {other!r} with it and {base!r} without"
    sides = set(base.split()), set(other.split())
    less, more = (sorted(one - two) for one, two in (sides, sides[::-1]))
    return " ".join([f"{name} with", *(f"+{one}" for one in more), *(f"-{one}" for one in less)])
