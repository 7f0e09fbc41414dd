# SPDX-License-Identifier: GPL-2.0-or-later
"""The example of the exports as a list to look through."""

from kdelta.counts.model import CONTEXTS
from kdelta.infer.profiles.calls import merged_calls
from kdelta.infer.profiles.profile import Selection
from kdelta.studies.profile.top import Choice, Choices, Functions, Top
from tests.report.exports.example import example

TITLE = "run 7f3a"


def top() -> Top:
    """Two regions, own work or all."""
    profiles = example()
    regions = ("all regions", *(profile.region for profile in profiles))

    def functions_of(choice: Choice) -> Functions:
        chosen = [p for p in profiles if choice.region in (regions[0], p.region)]
        contexts = CONTEXTS if choice.whose == "all" else CONTEXTS[:1]
        count = None if choice.column == "insns" else (lambda p: p.row_costs().loads)
        selection = Selection(contexts)
        if count is None:
            return Functions(merged_calls(chosen, selection))
        return Functions(merged_calls(chosen, selection, count=count))

    return Top(Choices(regions, ("own", "all"), ("insns", "loads")), functions_of)
