# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that cannot be had, and files that are none."""

import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from reading import read_document

from tests.machines.bench import OLD, kernel
from tests.robust.lab import kdelta, run_words, shared_cache, stored

pytestmark = [pytest.mark.guest, pytest.mark.slow]
Programs = Callable[[str], Path]

_NO_NETWORK = ["unshare", "--map-root-user", "--net"]


def _without_network() -> list[str]:
    if subprocess.run([*_NO_NETWORK, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this host does not let us cut a program off the network")
    return _NO_NETWORK


def test_an_unknown_package(program: Programs) -> None:
    ended = kdelta(*run_words(program("good"), kernel="deb:linux-image-clowd-amd64"))
    assert ended.code == 2
    assert "apt knows no package linux-image-clowd-amd64" in ended.err
    assert "linux-image-cloud-amd64" in ended.err.splitlines()[1]
    assert ended.out == ""


def test_an_unknown_version(program: Programs) -> None:
    ended = kdelta(*run_words(program("good"), kernel=f"{OLD}=1.2"))
    assert ended.code == 2
    assert "linux-image-cloud-amd64 has no version 1.2" in ended.err
    version = kernel().spec.rpartition("=")[2]
    assert ended.err.splitlines()[1].startswith("hint: there is: ")
    assert version in ended.err


def test_without_network_a_cached_kernel_works(program: Programs) -> None:
    kernel()
    ended = kdelta(*run_words(program("good")), before=_without_network())
    assert ended.code == 0, ended.err
    assert "downloading" not in ended.err
    assert [run.word for run in stored()] == ["ok"]


def test_without_network_a_kernel_to_fetch_is_reported_to_be_out_of_reach(
    own_cache: Path, program: Programs
) -> None:
    ended = kdelta(*run_words(program("good")), before=_without_network())
    assert ended.code == 3
    assert "is not in the cache, and cannot be fetched" in ended.err
    assert "hint: check the network" in ended.err
    assert not list((own_cache / "kernels").iterdir())


def test_files_that_are_no_kernel_for_the_lab(tmp_path: Path, program: Programs) -> None:
    text, arm, cut = (tmp_path / name for name in ("text", "Image", "cut"))
    text.write_text("not a kernel\n")
    arm.write_bytes(b"MZ" + bytes(0x36) + b"ARM\x64" + bytes(0x400))
    cut.write_bytes(Path(kernel().image).read_bytes()[:0x250])
    riscv = tmp_path / "vmlinux"
    elf = bytearray(program("good").read_bytes())
    struct.pack_into("<H", elf, 18, 243)  # e_machine: EM_RISCV
    riscv.write_bytes(elf)
    for path, what in (
        (text, "it is not a kernel"),
        (arm, "it is a kernel for arm64"),
        (cut, "it is a kernel that has been cut off"),
        (riscv, "another architecture (RISCV, 64 bit)"),
        (program("good"), "it is a program, not a kernel"),
    ):
        ended = kdelta(*run_words(program("good"), kernel=f"image:{path}"))
        assert (ended.code, ended.out) == (2, "")
        assert what in ended.err
        assert str(path) in ended.err
    assert stored() == []


def test_an_image_that_changes_is_another_kernel(
    user_cache: Path, own_cache: Path, tmp_path: Path, program: Programs
) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(Path(kernel().image).read_bytes())
    shared_cache(own_cache, user_cache, "native", "guests")
    words = run_words(program("good"), "--json", kernel=f"image:{image}")
    assert kdelta(*words).code == 0
    assert read_document(kdelta(*words).out).run.from_store
    stamp = image.stat()
    with image.open("ab") as file:
        file.write(b"\0")
    os.utime(image, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    again = kdelta(*words)
    assert again.code == 0
    assert not read_document(again.out).run.from_store
    second, first = stored()
    assert second.kernel_identity != first.kernel_identity
    assert second.counts_blob == first.counts_blob
