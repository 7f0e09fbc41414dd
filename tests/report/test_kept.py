# SPDX-License-Identifier: GPL-2.0-or-later
"""What an earlier kdelta kept can still be read: tests/report/kept has a study of every kind, of
schema 1, and some of schema 2.

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

from kdelta.report.measured import MODEL_CYCLES
from kdelta.report.older import NOW
from kdelta.report.stored import encode
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import STORED, stored_of
from tests.report.example_stored import EXAMPLES

KEPT = Path(__file__).parent / "kept"
UPDATE = "KDELTA_UPDATE_GOLDEN"
SCHEMA_2 = ("compare cycles", "ablate cycles", "gate", "history operations")
"""Studies with model cycles, as an encoder of that schema wrote them."""
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
            if name == "cycles" and found is None:
                yield from lost_cycles(value, new, path) if value else ()
            elif found is None and not f"{path}.{name}".endswith(REMOVED):
                yield f"{path}.{name}"
            elif found is not None:
                yield from lost(value, new[found], f"{path}.{found}")
    elif isinstance(old, list):
        for one, other in zip(old, new, strict=False):
            yield from lost(one, other, path)


def lost_cycles(old: Any, new: Any, path: str) -> Iterator[str]:
    """The same of model cycles, which were in a field of their own."""
    if "relative" in old:  # a step of a history
        step = new["measured"][MODEL_CYCLES]
        now = {"word": step["word"], "relative": step["change"], "shipped": step["as_linked"]}
        yield from lost({**old, "reason": step["reason"]}, {**now, "reason": old["reason"]}, path)
        return
    effects = old.get("effects", old)
    details = {one["region"]: one.get("detail") for one in new["measured"][0]["effects"]}
    for one in effects if isinstance(effects, list) else effects.values():
        yield from lost(one, details[one["region"]], f"{path}.cycles")
    if effects is not old:
        besides = {name: one for name, one in old.items() if name not in {"effects", "relinked"}}
        notes = new["measured"][0]["notes"]
        yield from lost(besides, {**new, "cut": [], "notes": notes}, path)
    assert [name for name, one in details.items() if one and one["relinked"]] == [
        *old.get("relinked", ())
    ]


@pytest.mark.parametrize("name", list(SCHEMA_2))
def test_what_schema_2_kept_of_model_cycles_is_what_is_kept_now(name: str) -> None:
    content = zlib.decompress((KEPT / "2" / file_of(name).name).read_bytes())
    assert msgspec.msgpack.decode(content)["schema"] == 2
    read, now = stored_of(content), stored_of(encode(EXAMPLES[name]))
    for form in FORMS:
        assert FORMS[form].render(read) == FORMS[form].render(now)


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_no_field_is_lost(name: str) -> None:
    content = zlib.decompress(file_of(name).read_bytes())
    old, new = map(msgspec.msgpack.decode, (content, encode(stored_of(content))))
    assert set(lost(old["reports"], new["reports"])) == set()


def test_there_is_one_of_every_kind() -> None:
    kinds = {stored_of(zlib.decompress(file.read_bytes())).kind for file in KEPT.glob("*.z")}
    assert kinds == set(STORED)
