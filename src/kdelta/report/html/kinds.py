# SPDX-License-Identifier: GPL-2.0-or-later
"""Which page a study of which kind has."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from kdelta.report.html import compare
from kdelta.report.html.flame import Flame
from kdelta.report.html.flame_section import with_flames
from kdelta.report.html.model import Document
from kdelta.report.model import CompareReport
from kdelta.report.stored import Stored

T = TypeVar("T", bound=msgspec.Struct)


def document(stored: Stored, flames: Sequence[Flame] = ()) -> Document:
    """The page of a stored study. ValueError for a kind that has none."""
    return with_flames(_plain(stored), flames)


def _plain(stored: Stored) -> Document:
    if reports := _all(stored, CompareReport):
        return compare.document(stored, reports)
    raise ValueError(f"no page for {stored.kind}")


def _all(stored: Stored, kind: type[T]) -> list[T]:
    """The reports, if they are of that type."""
    return [report for report in stored.reports if isinstance(report, kind)]
