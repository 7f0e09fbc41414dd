# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders of the cache: what is not as it was made is set aside, named, and made again."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.host.dirs import cache_dir
from kdelta.host.lock import fill_once
from tests.caches import forget_checks

FILES = {"program": b"1234567890", "lib/part": b"abc"}


def fill(folder: Path) -> None:
    (folder / "lib").mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "link").symlink_to("program")


def test_folder_as_made_is_filled_once(own_cache: Path) -> None:
    assert own_cache
    said: list[str] = []
    made = [fill_once(cache_dir("parts") / "a", "making", said.append, fill) for _ in range(2)]
    forget_checks()
    made.append(fill_once(cache_dir("parts") / "a", "making", said.append, fail))
    assert made == [cache_dir("parts") / "a"] * 3
    assert said == []


def fail(_: Path) -> None:
    raise AssertionError("it is whole")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "bit": (lambda folder: (folder / "program").write_bytes(b"1234567891"), "program is not"),
    "cut": (lambda folder: (folder / "lib/part").write_bytes(b"ab"), "lib/part is not"),
    "empty": (lambda folder: (folder / "lib/part").write_bytes(b""), "lib/part is not"),
    "gone": (lambda folder: (folder / "lib/part").unlink(), "lib/part is missing"),
    "more": (lambda folder: (folder / "lib/more").write_bytes(b""), "lib/more was added"),
    "mode": (lambda folder: (folder / "program").chmod(0o400), "program is not"),
    "link": (lambda folder: (folder / "link").rename(folder / "other"), "link is missing"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_folder_damaged_is_set_aside_named_and_made_again(kind: str, own_cache: Path) -> None:
    assert own_cache
    said: list[str] = []
    folder = cache_dir("parts") / "a"
    fill_once(folder, "making", said.append, fill)
    forget_checks()
    damage, word = DAMAGES[kind]
    damage(folder)
    assert fill_once(folder, "making", said.append, fill) == folder
    aside = cache_dir("damaged") / "parts-a"
    (line,) = said
    assert line.startswith(f"{folder} is damaged: {word}")
    assert line.endswith(f"it is kept in {aside}, and made again")
    assert aside.is_dir()
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES


def test_folder_damaged_with_its_size_and_time_is_noticed(own_cache: Path) -> None:
    assert own_cache
    folder = cache_dir("parts") / "a"
    fill_once(folder, "making", print, fill, "program")
    before = (folder / "program").stat()
    (folder / "program").write_bytes(b"1234567891")
    os.utime(folder / "program", ns=(before.st_atime_ns, before.st_mtime_ns))
    forget_checks()
    assert fill_once(folder, "making", print, fill, "program").read_bytes() == FILES["program"]


def test_folder_without_manifest_is_made_again_without_a_word(own_cache: Path) -> None:
    """As an older version of kdelta left it."""
    assert own_cache
    said: list[str] = []
    folder = cache_dir("parts") / "a"
    folder.mkdir(parents=True)
    fill(folder)
    (folder / "program").write_bytes(b"")
    assert fill_once(folder, "making", said.append, fill) == folder
    assert (folder / "program").read_bytes() == FILES["program"]
    assert said == []
