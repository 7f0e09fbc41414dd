# SPDX-License-Identifier: GPL-2.0-or-later
"""Phases: parts of a region's work, told by the kernel functions that are called in it.

    [[phase]]
    name = "router"
    calls = ["__netif_receive_skb", "netif_receive_skb_list_internal"]
    through = ["ip_forward", "nf_flow_offload_ip_hook"]

A phase is all that is executed from a call of any of `calls` until it returns, with what it calls
in turn, if any of `through` is called on the way (or in any case, where there is no `through`).
Whether it is, is known when the call returns. What is in no phase is the REST.

Calls within calls: the innermost one has what is executed, and a function of `through` belongs to
the innermost one alone. But a call of a function of the same rules as the innermost one's is no
call of its own, so that `calls` may name functions that call each other, as compilers inline now
the one and now the other. Of several rules that fit a call the first has it.

A function's name stands for its versions, too, those that a compiler calls NAME.constprop.0,
NAME.isra.0 and so on.
"""

from collections.abc import Sequence

import msgspec

from kdelta.spec.errors import UserError

REST = "rest"
"""What is in no phase."""

MOST_RULES = 64


class PhaseRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One phase: what runs within calls of `calls` that go through any of `through`. Rules of one
    name make one phase. summary: what it is, for people.
    """

    name: str
    calls: tuple[str, ...]
    through: tuple[str, ...] = ()
    summary: str = ""


def check_rules(rules: Sequence[PhaseRule]) -> None:
    """Raises UserError for rules that mean nothing, with the phase and what is wrong."""
    if len(rules) > MOST_RULES:
        raise UserError(f"there are {len(rules)} rules of phases", f"at most {MOST_RULES} can be")
    for rule in rules:
        if not rule.name.strip() or rule.name == REST:
            raise UserError(
                f"a phase is called {rule.name!r}",
                f"give it a name of its own; {REST!r} is what is in no phase",
            )
        if not rule.calls:
            raise UserError(f"phase {rule.name!r} begins nowhere", "name a function in `calls`")
        for name in (*rule.calls, *rule.through):
            if not name or any(c.isspace() for c in name) or "." in name:
                raise UserError(
                    f"phase {rule.name!r} names {name!r}, which is no function",
                    "give its name as in the source, without .constprop.0 and the like",
                )


def phase_names(rules: Sequence[PhaseRule]) -> tuple[str, ...]:
    """The phases in the order of their first rules, the REST last."""
    return (*dict.fromkeys(rule.name for rule in rules), REST)
