# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of what is stored, as JSON."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from kdelta.report.json import document_text
from kdelta.store.model import Study


class JsonStudy(msgspec.Struct, frozen=True):
    """A study; `started` in seconds since 1970, `kdelta` the version that made it."""

    id: str
    kind: str
    question: str
    command: str
    started: float
    kdelta: str


class JsonStudies(msgspec.Struct, frozen=True):
    """The whole of `kdelta report --list`."""

    schema: Literal["kdelta.studies/1"]
    kdelta: str
    studies: list[JsonStudy]


def studies_json(studies: Sequence[Study], version: str) -> str:
    """A list of studies; `version` is kdelta's."""
    listed = [
        JsonStudy(one.id, one.kind, one.question, one.command, one.started, one.version)
        for one in studies
    ]
    return document_text(JsonStudies("kdelta.studies/1", version, listed))
