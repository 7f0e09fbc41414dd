# SPDX-License-Identifier: GPL-2.0-or-later
"""What an earlier kdelta kept can still be read: tests/report/kept has a study of every kind, of
schema 1.

A model that changes so that one of these loses a field needs another stored.SCHEMA, and what it was
called in report/older.py.
"""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.report.older import NOW
from kdelta.report.stored import encode
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import STORED, stored_of
from tests.report.example_stored import EXAMPLES

KEPT = Path(__file__).parent / "kept"
UPDATE = "KDELTA_UPDATE_GOLDEN"
REMOVED = (".bound", ".regions.truncated", ".cut.kernels")
"""How the paths of fields end of which nothing is kept any more."""


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


def lost(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The fields of what was kept that are in nothing that was read."""
    if isinstance(old, dict):
        for name, value in old.items():
            found = next((one for one in (name, NOW.get(name)) if one in new), None)
            if found is None and not f"{path}.{name}".endswith(REMOVED):
                yield f"{path}.{name}"
            elif found is not None:
                yield from lost(value, new[found], f"{path}.{found}")
    elif isinstance(old, list):
        for one, other in zip(old, new, strict=False):
            yield from lost(one, other, path)


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_no_field_is_lost(name: str) -> None:
    content = zlib.decompress(file_of(name).read_bytes())
    old, new = map(msgspec.msgpack.decode, (content, encode(stored_of(content))))
    assert set(lost(old["reports"], new["reports"])) == set()


def test_there_is_one_of_every_kind() -> None:
    kinds = {stored_of(zlib.decompress(file.read_bytes())).kind for file in KEPT.iterdir()}
    assert kinds == set(STORED)
