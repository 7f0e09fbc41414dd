# SPDX-License-Identifier: GPL-2.0-or-later
"""The JSON documents that kdelta prints, and their schemas."""

import difflib
from typing import Any

import msgspec

from kdelta.report.cpus import CPUList
from kdelta.report.json import document_type, plain
from kdelta.report.model import RunList, StudyList
from kdelta.spec.errors import UserError
from kdelta.studies.kinds import KINDS

DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    **{kind.json: kind.json_type for kind in KINDS.values()},
    "kdelta.cpus/2": CPUList,
    "kdelta.runs/2": RunList,
    "kdelta.studies/2": StudyList,
}
"""The types of documents, by the name that these carry in their field `schema`. A field may be
added under the same number; what changes or removes one gets the next.
"""

_REMOVED = ("kdelta.calibration/1", "kdelta.calibration-check/1")
_PAGE = "docs/what-a-miss-costs.md has what was found"

_NAMES = {kind: name for name, kind in DOCUMENTS.items()}


def document_text(report: msgspec.Struct, version: str, study: str = "") -> str:
    """Return a report as the document of its type; `version` is kdelta's, `study` the id of a study
    that is kept.
    """
    head = {
        "schema": _NAMES[type(report)],
        "kdelta": version,
        **({"study": study} if study else {}),
    }
    document = msgspec.json.encode({**head, **plain(report)})
    return msgspec.json.format(document, indent=1).decode() + "\n"


def schema_text(name: str) -> str:
    """Return the JSON Schema of the document of that name; UserError if there is none."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        **msgspec.json.schema(type_of(name)),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def type_of(name: str) -> type[msgspec.Struct]:
    """Return the type of the document of that name; UserError if there is none."""
    return document_type(name, DOCUMENTS[_known(name)])


def _known(name: str) -> str:
    """Return that name; UserError, with the nearest, if no document has it."""
    if name in DOCUMENTS:
        return name
    if name in _REMOVED:
        raise UserError(f"{name} is a document of kdelta calibrate, which was removed", _PAGE)
    kind, _, number = name.partition("/")
    other = next((one for one in DOCUMENTS if one.partition("/")[0] == kind), None)
    if other is None or not number:
        near = [other] if other else difflib.get_close_matches(name, DOCUMENTS, n=1, cutoff=0.5)
        meant = "".join(f"did you mean {one}? " for one in near)
        raise UserError(f"no such document: {name}", f"{meant}kdelta schema lists them")
    raise UserError(
        f"a document is of {name}, and this kdelta knows {other}",
        "make it again by this kdelta, or read it by the one that made it",
    )
