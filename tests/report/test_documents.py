# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON documents stay as they are (tests/report/golden/documents has one of every kind), are as
their schemas say, and can be read.
"""

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import msgspec
import pytest
from reading import as_now, read_document

from kdelta.report.json import LEFT_OUT, document_type, plain
from kdelta.spec.errors import UserError
from kdelta.studies.documents import DOCUMENTS, schema_text
from tests.report.decoded import decoded
from tests.report.example_documents import documents

DOCS = Path(__file__).parents[2] / "docs"
GOLDEN = Path(__file__).parent / "golden/documents"
UPDATE = "KDELTA_UPDATE_GOLDEN"


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return documents()


def figures(text: str) -> Any:
    """A document whose figures have the nine digits that are the same on every host."""
    return json.loads(text, parse_float=lambda figure: float(f"{float(figure):.9g}"))


def compact(document: dict[str, Any]) -> str:
    """A document with a line for each of its entries, and for each item of an entry's list."""

    def line(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"), sort_keys=True)

    def entry(value: Any) -> str:
        is_rows = isinstance(value, list) and any(isinstance(one, dict) for one in value)
        return "[\n" + ",\n".join(map(line, value)) + "]" if is_rows else line(value)

    lines = [f'"{key}":{entry(document[key])}' for key in sorted(document)]
    return "{" + ",\n".join(lines) + "}\n"


@pytest.mark.slow
def test_documents_recorded_ones_validate_and_can_be_read() -> None:
    recorded = [path.read_text() for path in DOCS.rglob("*.json")]
    texts = [text for text in recorded if '"schema": "kdelta.' in text[:40]]
    assert len(texts) >= 10
    for text in texts:
        document = as_now(text)
        validator(document["schema"]).validate(document)
        assert read_document(text).kdelta == document["kdelta"]


def test_documents_same_values_as_golden(found: dict[str, str]) -> None:
    if os.environ.get(UPDATE):
        GOLDEN.mkdir(exist_ok=True)
        for name, text in found.items():
            (GOLDEN / f"{name}.json").write_text(compact(figures(text)))
    assert {path.stem for path in GOLDEN.iterdir()} == set(found)
    for name, text in found.items():
        assert figures(text) == figures((GOLDEN / f"{name}.json").read_text()), name


def test_documents_golden_has_every_kind(found: dict[str, str]) -> None:
    assert {json.loads(text)["schema"] for text in found.values()} == set(DOCUMENTS)


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(schema_text(name))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_documents_validate_by_their_schemas(found: dict[str, str]) -> None:
    for text in found.values():
        document = json.loads(text)
        check = validator(document["schema"])
        check.validate(document)
        for key in document:
            assert not check.is_valid({**document, key: object()}), key


def test_documents_read_has_all_that_was_written(found: dict[str, str]) -> None:
    for text in found.values():
        assert decoded(text)["schema"] in DOCUMENTS


def test_names_of_the_schema_are_checked() -> None:
    for name, said, hint in (
        ("kdelta.compare/1", "kdelta.compare/1, and this kdelta knows kdelta.compare/4", "again"),
        ("kdelta.ablation/2", "no such document: kdelta.ablation/2", "kdelta.ablate/3"),
        ("ablate", "no such document: ablate", "kdelta.ablate/3"),
        ("speedscope", "no such document: speedscope", "kdelta schema"),
    ):
        with pytest.raises(UserError, match=said) as caught:
            schema_text(name)
        assert hint in caught.value.hint


def structs(kind: Any, known: dict[type, None]) -> dict[type, None]:
    """The structs that values of a type are made of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in known:
        known[kind] = None
        for hint in get_type_hints(kind).values():
            structs(hint, known)
    for one in get_args(kind):
        structs(one, known)
    return known


def test_fields_that_are_left_out_are_there() -> None:
    known: dict[type, None] = {}
    for document in DOCUMENTS.values():
        structs(document, known)
    fields = {f"{one.__name__}.{field}" for one in known for field in get_type_hints(one)}
    assert fields >= LEFT_OUT


def test_no_names_of_blobs_are_written(found: dict[str, str]) -> None:
    for text in found.values():
        for private in ("attachments", "console_blob", "counts_blob", "report_blob", "variance"):
            assert f'"{private}"' not in text


class Part(msgspec.Struct):
    """A part."""

    high: float


class Run(Part):
    """One of which a field is left out."""

    key: str = "secret"


class Outer(msgspec.Struct):
    """A whole."""

    rows: tuple[Run, ...]
    quarter: Fraction = msgspec.field(name="part")
    pair: tuple[int, str] = (1, "a")


def test_a_struct_is_written_as_it_is() -> None:
    whole = Outer((Run(float("inf")), Run(0.5)), Fraction(1, 4))
    written = plain(whole)
    assert written == {"rows": [{"high": None}, {"high": 0.5}], "part": 0.25, "pair": [1, "a"]}
    assert plain(Fraction(3)) == 3
    kind = document_type("outer/1", Outer)
    read = msgspec.convert({"schema": "outer/1", "kdelta": "1", **written}, kind)
    assert msgspec.to_builtins(read)["rows"] == written["rows"]
    schema = msgspec.json.schema(kind)["$defs"]
    assert schema["Document"]["required"] == ["schema", "kdelta", "rows", "part"]
    assert schema["Document"]["description"] == "A whole."
    assert schema["Run"]["description"] == "One of which a field is left out.\n\nA part."
