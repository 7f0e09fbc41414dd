# SPDX-License-Identifier: GPL-2.0-or-later
"""Chooses the runs and studies of the store that may go."""

from collections.abc import Iterable, Iterator

from kdelta.store.model import Run, Study
from kdelta.store.store import Store


def chosen(store: Store, before: float, *, runs: bool, studies: bool) -> list[Run | Study]:
    """The runs and studies that started before a moment; of the runs those that no study, or none
    that stays, names in its report. LabError for a report that cannot be read.
    """
    gone = [one for one in store.studies() if studies and one.started < before]
    if not runs:
        return [*gone]
    ids = {one.id for one in gone}
    named = _named(store, (one for one in store.studies() if one.id not in ids))
    free = [
        one
        for one in store.runs()
        if one.started < before and one.word != "started" and one.id not in named
    ]
    return [*gone, *free]


def _named(store: Store, studies: Iterable[Study]) -> set[str]:
    """The ids of the runs that reports of studies name."""
    ids = [one.id for one in store.runs()]
    return {one for report in _reports(store, studies) for one in ids if one.encode() in report}


def _reports(store: Store, studies: Iterable[Study]) -> Iterator[bytes]:
    return (store.get(one.report_blob) for one in studies)
