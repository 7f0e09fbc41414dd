# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's initramfs: what is in it, and that it is the same byte for byte."""

import hashlib
import stat
from pathlib import Path

import pytest

from kdelta.guests.image import base_image
from kdelta.host.dirs import cache_dir
from kdelta.host.gcc import Compiler
from kdelta.host.native import build_part
from tests.guests.cpio_reader import read

pytestmark = pytest.mark.long
X86 = Compiler("x86_64")


@pytest.mark.slow
def test_content() -> None:
    image = base_image(X86)
    data = image.path.read_bytes()
    assert image.identity == hashlib.sha256(data).hexdigest()
    found = {name: (numbers[1], content) for name, numbers, content in read(data)}
    for program in ("init", "workloads/syscalls"):
        mode, content = found[program]
        assert mode == stat.S_IFREG | 0o755
        assert content.startswith(b"\x7fELF")
    assert stat.S_ISCHR(found["dev/console"][0])
    assert stat.S_ISDIR(found["proc"][0])


@pytest.mark.slow
def test_the_same_bytes_when_all_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = []
    for name in ("one", "two-which-is-longer"):
        monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / name))
        images.append(base_image(X86))
    assert images[0].path != images[1].path
    assert images[0].path.read_bytes() == images[1].path.read_bytes()
    assert str(tmp_path).encode() not in images[0].path.read_bytes()


@pytest.mark.slow
def test_programs_that_are_compiled_again_make_another_image(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = base_image(X86)
    agent = own_cache / "init"
    agent.write_bytes(build_part("agent", by=X86).read_bytes())
    monkeypatch.setattr("kdelta.guests.image.build_part", lambda *_, **__: agent)
    assert base_image(X86).identity == first.identity
    agent.write_bytes(agent.read_bytes() + b"more")
    second = base_image(X86)
    assert second.identity != first.identity
    assert second.identity == hashlib.sha256(second.path.read_bytes()).hexdigest()


@pytest.mark.slow
def test_damaged_image_is_made_again(own_cache: Path) -> None:
    assert own_cache
    image = base_image(X86)
    content = image.path.read_bytes()
    image.path.write_bytes(content[:-1])
    again = base_image(X86)
    assert again == image
    assert again.path.read_bytes() == content
    assert [path.name for path in cache_dir("guests").iterdir()] == [image.path.name]


@pytest.mark.slow
def test_image_with_another_bit_is_named_and_made_again(own_cache: Path) -> None:
    assert own_cache
    image = base_image(X86)
    data = image.path.read_bytes()
    image.path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    said: list[str] = []
    assert base_image(X86, said.append) == image
    assert image.path.read_bytes() == data
    assert said == [f"{image.path} is damaged: it is not what was made; it is made again"]


@pytest.mark.slow
def test_image_of_several_cpus_has_another_agent() -> None:
    """And that of one CPU the agent that it always had: its bytes decide where a guest starts."""
    assert base_image(X86, cpus=2) == base_image(X86, cpus=64)
    assert base_image(X86, cpus=2).identity != base_image(X86).identity
