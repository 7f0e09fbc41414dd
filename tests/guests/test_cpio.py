# SPDX-License-Identifier: GPL-2.0-or-later
"""Archives for the guest: read back by a reader that is not ours, and the same each time."""

import stat
import subprocess
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.guests.cpio import Entry, archive, file, folder
from tests.guests.cpio_reader import read


def test_entries_come_back_with_the_folders_above() -> None:
    program = file("a/b/program", b"12345", executable=True)
    entries = [program, file("job", b""), folder("tmp", 0o1777)]
    found = {name: (numbers, content) for name, numbers, content in read(archive(entries))}
    assert list(found) == ["a", "a/b", "a/b/program", "job", "tmp"]
    assert found["a/b/program"][1] == b"12345"
    modes = {name: numbers[1] for name, (numbers, _) in found.items()}
    assert modes == {
        "a": stat.S_IFDIR | 0o755,
        "a/b": stat.S_IFDIR | 0o755,
        "a/b/program": stat.S_IFREG | 0o755,
        "job": stat.S_IFREG | 0o644,
        "tmp": stat.S_IFDIR | 0o1777,
    }


def test_owner_and_time_are_nothing_of_the_host() -> None:
    for _, numbers, _ in read(archive([file("a/b", b"x")])):
        _inode, _mode, uid, gid, _links, mtime, *_ = numbers
        assert (uid, gid, mtime) == (0, 0, 0)


def test_device() -> None:
    console = Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    numbers = read(archive([console]))[1][1]
    assert (numbers[9], numbers[10]) == (5, 1)


def test_a_path_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        archive([file("a", b"1"), file("a", b"2")])


names = st.lists(st.sampled_from(["a", "b", "a-b", "a.b", "c"]), min_size=1, max_size=4)


@given(st.dictionaries(names.map("/".join), st.binary(max_size=9), max_size=8), st.randoms())
def test_any_order_is_the_same_and_folders_come_first(
    content: dict[str, bytes], random: Random
) -> None:
    paths = [path for path in content if not any(o.startswith(f"{path}/") for o in content)]
    entries = [file(path, content[path]) for path in paths]
    first = archive(entries)
    random.shuffle(entries)
    assert archive(entries) == first
    found = read(first)
    seen: set[str] = set()
    for name, numbers, data in found:
        parent = name.rpartition("/")[0]
        assert not parent or parent in seen
        seen.add(name)
        if stat.S_ISREG(numbers[1]):
            assert data == content[name]
    assert len({numbers[0] for _, numbers, _ in found}) == len(found)
    assert set(paths) <= seen


@pytest.mark.outside
def test_cpio_reads_it(tmp_path: Path) -> None:
    data = archive([file("a/b", b"content"), folder("tmp", 0o1777)])
    subprocess.run(["cpio", "-id", "--quiet"], input=data, cwd=tmp_path, check=True)
    assert (tmp_path / "a/b").read_bytes() == b"content"
