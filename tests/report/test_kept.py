# SPDX-License-Identifier: GPL-2.0-or-later
"""What an earlier kdelta kept can still be read: tests/report/kept has a study of every kind.

A model that changes so that one of these cannot be read any more needs another stored.SCHEMA, and
these files again: remove them, and run this with KDELTA_UPDATE_GOLDEN=1.
"""

import os
import zlib
from pathlib import Path

import pytest

from kdelta.report.stored import encode
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import STORED, stored_of
from tests.report.example_stored import EXAMPLES

KEPT = Path(__file__).parent / "kept"
UPDATE = "KDELTA_UPDATE_GOLDEN"


def file_of(name: str) -> Path:
    return KEPT / f"{name.replace(' ', '-')}.z"


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_what_was_kept_is_read_and_shown(name: str) -> None:
    file = file_of(name)
    if os.environ.get(UPDATE) and not file.exists():
        KEPT.mkdir(exist_ok=True)
        file.write_bytes(zlib.compress(encode(EXAMPLES[name]), 9))
    stored = stored_of(zlib.decompress(file.read_bytes()))
    assert stored.kind == EXAMPLES[name].kind
    assert stored.question.endswith("?")
    for form in ("text", "json", "mail", "ktap", "junit", "markdown"):
        assert FORMS[form].render(stored)


def test_there_is_one_of_every_kind() -> None:
    kinds = {stored_of(zlib.decompress(file.read_bytes())).kind for file in KEPT.iterdir()}
    assert kinds == set(STORED)
