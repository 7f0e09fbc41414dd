# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as it is stored, and as its command prints it."""

import msgspec

from kdelta.report.stored import Stored
from kdelta.studies.forms import text
from kdelta.studies.kinds import KINDS, question_of


def stored(kind: str, *reports: msgspec.Struct) -> Stored:
    return Stored(
        kind,
        question_of(kind, reports) if KINDS[kind].question else f"A {kind}?",
        "kdelta compare 'a b' c",
        1_767_225_600.0,
        "0.1",
        reports,
        {"explain": 2, "functions": 3},
    )


def shown(kind: str, *reports: msgspec.Struct) -> str:
    return text(stored(kind, *reports))


def unwrapped(kind: str, *reports: msgspec.Struct) -> str:
    """The same with its words one space apart, so that a sentence can be looked for."""
    return " ".join(shown(kind, *reports).split())
