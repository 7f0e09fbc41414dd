# SPDX-License-Identifier: GPL-2.0-or-later
"""Symbol ordering files: what is read, what is refused, and that what is written reads the same."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernels.kbuild.order_file import read_order, write_order
from kdelta.spec.errors import UserError

NAMES = st.from_regex(r"\A[A-Za-z_.][A-Za-z0-9_.$]{0,20}\Z")


def test_names_comments_and_repetitions(tmp_path: Path) -> None:
    path = tmp_path / "order"
    path.write_text("# by hand\n\n do_sys_open \nvfs_read # hot\r\nfoo.isra.0\nvfs_read\n")
    assert read_order(path) == ("do_sys_open", "vfs_read", "foo.isra.0")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"# nothing\n\n", "is empty"),
        (b"\x7fELF\x02\x01\x01\xff\xfe", "not text"),
        (b"\x7fELF\x02\x01\x00\n", "no name of a function"),
        (b"ok\nvfs_read 12\n", ":2: 'vfs_read 12' is no name"),
    ],
)
def test_what_is_no_order_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "order"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_order(path)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_order(tmp_path / "none")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 1 << 30)
    with pytest.raises(UserError, match="too large"):
        read_order(tmp_path / "large")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is no file but a pipe or a device"):
        read_order(tmp_path / "pipe")
    with pytest.raises(UserError, match="none/order"):
        write_order(tmp_path / "none" / "order", ["a"])


def test_functions_of_one_name_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "order"
    write_order(path, ["init#2", "vfs_read", "init", "init#3"], ["for open+close\nmade by hand"])
    assert path.read_text() == "# for open+close\n# made by hand\ninit\nvfs_read\n"


@given(st.lists(NAMES, min_size=1, unique=True))
def test_what_is_written_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    path = tmp_path_factory.mktemp("orders") / "order"
    write_order(path, names, ["a comment"])
    assert read_order(path) == tuple(names)
