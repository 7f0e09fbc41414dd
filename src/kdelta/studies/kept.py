# SPDX-License-Identifier: GPL-2.0-or-later
"""Studies into the store, and out of it."""

from kdelta.report.stored import Stored, decode, encode
from kdelta.spec.errors import LabError
from kdelta.store.model import NewStudy, Study
from kdelta.store.store import Store
from kdelta.studies.kinds import RENAMED, STORED


def keep(stored: Stored, store: Store) -> Study:
    """Keeps a study with its report; LabError if that cannot be written."""
    return store.keep_study(
        NewStudy(
            kind=stored.kind,
            question=stored.question,
            command=stored.command,
            started=stored.started,
            version=stored.version,
            report_blob=store.put(encode(stored)),
        )
    )


def stored_of(content: bytes) -> Stored:
    """Read what is kept of a study; LabError for what cannot be read."""
    return decode(content, STORED, RENAMED)


def load(study: Study, store: Store) -> Stored:
    """A study with its report; LabError, with what makes it again, if that is lost or damaged."""
    try:
        return stored_of(store.get(study.report_blob))
    except LabError as error:
        raise LabError(
            f"the report of study {study.id} cannot be shown: {error.message}",
            f"its runs may be in the store still; this makes it again: {study.command}",
        ) from error
