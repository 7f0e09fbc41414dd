# SPDX-License-Identifier: GPL-2.0-or-later
"""Files at random: each is read, or refused by a UserError; and what has a diff or an option in it
is never taken for something that changes nothing.
"""

import contextlib
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.sources.given import GivenFile, given_at
from kdelta.spec.errors import UserError
from tests.kernels.sources.given_files import (
    COVER,
    CUT,
    FRAGMENT,
    MAILBOX,
    PACKERS,
    PATCH,
    PLAIN,
    PROSE,
    REPLY,
    SERIES,
)

WHOLE = [text.encode() for text in (COVER, CUT, FRAGMENT, PATCH, PLAIN, PROSE, REPLY, SERIES)]
LINES = sorted({line for text in (*WHOLE, MAILBOX.encode()) for line in text.splitlines(True)})
ODD = [
    b"\0",
    b"\r\n",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"From ",
    b"--- a/x\n",
    b"> ",
    b"CONFIG_X = y\n",
]
NAMES = ("x", "x.patch", "series", "x.config", "board_defconfig", "t.mbox", ".config")
PARTS = st.one_of(st.sampled_from([*WHOLE, *LINES, *ODD]), st.binary(max_size=40))
CONTENTS = st.lists(PARTS, max_size=12).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A content of which some is cut out, repeated or overwritten."""
    content = draw(st.one_of(st.sampled_from(WHOLE), CONTENTS))
    for _ in range(draw(st.integers(0, 3))):
        at, length = draw(st.integers(0, len(content))), draw(st.integers(0, 60))
        piece = draw(st.one_of(st.binary(max_size=6), st.just(content[at : at + length])))
        content = content[:at] + piece + content[at + draw(st.integers(0, length)) :]
    return content


def read(content: bytes, name: str, ending: str) -> GivenFile | None:
    """What a file of that name and content holds; None if it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "member.patch").write_text(PLAIN)
        path = Path(folder) / f"{name}{ending}"
        path.write_bytes(PACKERS[ending](content) if ending else content)
        with contextlib.suppress(UserError):
            return given_at(path)
    return None


def check(content: bytes, name: str, ending: str) -> None:
    found = read(content, name, ending)
    if found is None:
        return
    assert found.described
    if found.patches:
        assert all(patch.content.strip() for patch in found.patches)
        assert found.kind in ("patch", "mailbox", "series")
        return
    # A config: it has options, all of the file's, and no diff.
    assert parse_config(found.text)
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = content.decode("utf-16" if utf16 else "utf-8", "replace")
    assert not re.search(r"^diff --git \S|^--- \S.*\r?\n\+\+\+ \S", text, re.MULTILINE)
    named = set(re.findall(r"^\s*(CONFIG_\w+)\s*=", text, re.MULTILINE))
    assert named <= set(parse_config(found.text))


@given(damaged(), st.sampled_from(NAMES))
@settings(max_examples=25)
def test_files_at_random(content: bytes, name: str) -> None:
    check(content, name, "")


@pytest.mark.slow
@given(damaged(), st.sampled_from(NAMES), st.sampled_from(["", *PACKERS]))
@settings(max_examples=2000)
def test_many_files_at_random(content: bytes, name: str, ending: str) -> None:
    check(content, name, ending)


@given(st.lists(st.sampled_from([PATCH, REPLY, COVER, FRAGMENT]), min_size=1, max_size=5))
@settings(max_examples=25)
def test_mails_in_any_order(mails: list[str]) -> None:
    """Each mail is a patch, or left out and named."""
    found = read("".join(mails).encode(), "t.mbox", "")
    if found is not None and mails[0] is not FRAGMENT:
        count = sum(mail is not FRAGMENT for mail in mails)
        assert len(found.patches) + len(found.left_out) == count
