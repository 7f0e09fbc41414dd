# SPDX-License-Identifier: GPL-2.0-or-later
"""A new study is a folder and two lines in studies/kinds.py; a new column is in every form."""

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import reading

from kdelta.report.document import Cell, Column
from kdelta.report.kind import ALL
from kdelta.studies.compare import columns, first_screen
from kdelta.studies.compare import document as compare
from kdelta.studies.forms import FORMS
from tests.report.example_stored import EXAMPLES

SOURCE = Path(__file__).parents[2] / "src/kdelta"
TABLES = ("text", "mail", "markdown", "html")
"""The forms that have tables of figures; JSON has its figures from the report's types."""

MODEL = """
import msgspec

class ToyReport(msgspec.Struct, frozen=True):
    answer: int
"""
KIND = """
from kdelta.report.document import Answer, Case, Document, Outcome, Suite
from kdelta.report.kind import Kind
from kdelta.report.parts import made_of
from kdelta.studies.toy.model import ToyReport

def document(stored, report):
    return Document(
        title="a toy",
        made=made_of(stored),
        answers=(Answer((f"The answer is {report.answer}.",)),),
        facts=(),
        sections=(),
        environment=(),
        suites=(Suite("toy", (Case("answer", Outcome.OK, f"The answer is {report.answer}."),)),),
    )

KIND = Kind(
    report=ToyReport,
    json="kdelta.toy/1",
    document=lambda s: document(s, s.one(ToyReport)),
    question=lambda reports: "What is the answer?",
)
"""
SHOWN = """
import json
from kdelta.report.stored import Stored
from kdelta.studies.documents import schema_text
from kdelta.studies.forms import FORMS
from kdelta.studies.toy.model import ToyReport

stored = Stored("toy", "What is the answer?", "kdelta toy", 0.0, "0", (ToyReport(42),))
for name, form in FORMS.items():
    text = form.render(stored)
    assert "42" in text, name
assert json.loads(FORMS["json"].render(stored))["answer"] == 42
assert '"answer"' in schema_text("kdelta.toy/1")
print(*FORMS)
"""


def with_lines(file: Path, after: str, line: str) -> None:
    text = file.read_text()
    assert text.count(after) == 1
    file.write_text(text.replace(after, f"{after}{line}"))


@pytest.mark.slow
def test_a_study_is_a_folder_and_its_lines_in_one_table(tmp_path: Path) -> None:
    package = tmp_path / "kdelta"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "studies/toy").mkdir()
    for name, text in (("__init__", ""), ("model", MODEL), ("kind", KIND)):
        (package / f"studies/toy/{name}.py").write_text(text)
    kinds = package / "studies/kinds.py"
    with_lines(kinds, "import kind as series\n", "from kdelta.studies.toy import kind as toy\n")
    with_lines(kinds, '    "series": series.KIND,\n', '    "toy": toy.KIND,\n')
    argv = [sys.executable, "-c", SHOWN]
    path = f"{tmp_path}:{Path(reading.__file__).parent}"
    done = subprocess.run(
        argv, env={"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split() == list(FORMS)


def test_a_column_of_operations_is_in_every_form_and_on_the_first_screen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    luck: columns.Columns = ((Column("luck", "number"),), lambda _: [Cell("77.77")])
    full, screen = columns.all_columns, columns.screen_columns
    monkeypatch.setattr(compare, "all_columns", lambda pair: [*full(pair), luck])
    monkeypatch.setattr(first_screen, "screen_columns", lambda pair: [*screen(pair), luck])
    stored = EXAMPLES["compare cycles"]
    for name in TABLES:
        shown = FORMS[name].render(msgspec.structs.replace(stored, shown={ALL: 1}))
        assert "77.77" in shown, name
    assert "77.77" in FORMS["text"].render(msgspec.structs.replace(stored, shown={}))
