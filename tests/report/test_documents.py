# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON documents stay as they are (tests/report/golden/documents has one of every kind), are as
their schemas say, and can be read.
"""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from reading import read_document

from kdelta.report.json import Shape, Writer
from kdelta.spec.errors import UserError
from kdelta.studies.documents import DOCUMENTS, SHAPES, schema_text
from tests.report.decoded import decoded
from tests.report.example_documents import documents

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


def test_shapes_name_fields_that_there_are() -> None:
    for kind, shape in SHAPES.items():
        fields = {field.name for field in msgspec.structs.fields(kind)}
        assert fields.issuperset(shape.omits + shape.flat), kind


OLD = '{"schema":"kdelta.compare/1"}'
NEAR = '{"schema":"kdelta.ablation/1"}'


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        (OLD, "kdelta.compare/1, and this kdelta knows kdelta.compare/2", "again"),
        (NEAR, "no such document: kdelta.ablation/1", "kdelta.ablate/1"),
        ('{"schema":"ablate"}', "no such document: ablate", "kdelta.ablate/1"),
        ('{"schema":"speedscope"}', "no such document: speedscope", "kdelta schema"),
        ('{"schema":"kdelta.ablate/1"}', "cannot read the document: .*kdelta", ""),
        ("[]", "cannot read the document", ""),
        ("{", "cannot read the document", ""),
    ],
)  # fmt: skip
def test_document_of_no_known_schema_is_refused(content: str, said: str, hint: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        read_document(content)
    assert hint in caught.value.hint


class Inner(msgspec.Struct):
    """A part."""

    high: float
    name: str = ""
    hidden: int = 0


class Outer(msgspec.Struct):
    """A whole."""

    rows: tuple[Inner, ...]
    inner: Inner
    names: tuple[str, ...] = ()
    size: int = 3


def test_writer_shapes_each_entry() -> None:
    def title(one: Inner, outer: Outer) -> str:
        """Of the whole."""
        return one.name * outer.size

    writer = Writer(
        {
            Inner: Shape(
                adds={"title": title, "id": "name"}, omits=("hidden",), unbounded=("high",)
            ),
            Outer: Shape(flat=("inner",), later=("size",), sparse=("names",)),
        }
    )
    whole = Outer((), Inner(float("inf"), "a"))
    assert writer.plain(whole) == {
        "high": None, "id": "a", "title": "aaa", "size": 3, "rows": []
    }  # fmt: skip
    kind = writer.document("outer/1", Outer)
    read = msgspec.convert({"schema": "outer/1", "kdelta": "1", **writer.plain(whole)}, kind)
    assert msgspec.structs.asdict(read)["title"] == "aaa"
    schema = msgspec.json.schema(kind)["$defs"]["Document"]
    assert schema["required"] == ["schema", "kdelta", "high", "id", "title", "rows"]
    assert schema["properties"]["title"] == {"type": "string", "description": "Of the whole."}
    assert schema["description"] == "A whole."
