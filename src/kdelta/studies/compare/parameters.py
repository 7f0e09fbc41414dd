# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether boot parameters that two kernels differ in had an effect, by what their guests show."""

from kdelta.infer.effects.effects import Effects
from kdelta.infer.effects.estimate import is_seen
from kdelta.report.names import own_parameters

_DOUBT = " may be without effect on "
"""In a warning that a kernel does not say whether it knows a parameter."""

_NOTHING = (
    "nothing that was looked at differs, neither an executed function nor what the guests show of "
    "their CPU and mitigations. What it is for may be missing in this guest; where it is there, "
    "this may cost something"
)


def warnings_on_parameters(
    specs: tuple[str, str], effects: Effects, shown: tuple[str, str]
) -> tuple[str, ...]:
    """Return the warnings of a comparison, with what is known of boot parameters.

    specs: those of both kernels. shown: what each guest showed of its CPU and mitigations. Where
    nothing but parameters differs, an executed function or what a guest shows that differs is their
    effect, so no doubt is left; where nothing does, that is a warning.
    """
    words = own_parameters(*specs)
    if not words or not any(one.costs for one in effects.operations):
        return effects.warnings
    certain = tuple(text for text in effects.warnings if _DOUBT not in text)
    if _differ(effects) or len({_lasting(text) for text in shown}) > 1:
        return certain
    return (*certain, f"{' '.join(words)}: {_NOTHING}")


def _differ(effects: Effects) -> bool:
    """Whether any function of an operation executes more or fewer instructions, by all runs."""
    found = (one.cost.effect for operation in effects.operations for one in operation.functions)
    return any(map(is_seen, found))


def _lasting(shown: str) -> str:
    """What a guest shows without what it measured: how fast its CPU is."""
    lines = (line for line in shown.splitlines() if not line.startswith(("cpu MHz", "bogomips")))
    return "\n".join(lines)
