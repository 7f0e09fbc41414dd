# SPDX-License-Identifier: GPL-2.0-or-later
"""Where Makefiles mention an option, and what is taken to be reached by it."""

from pathlib import Path

import pytest

from kdelta.kernels.config.mentions import Mention, find_mentions


def mentions(tmp_path: Path, files: dict[str, str], option: str = "CONFIG_X") -> list[Mention]:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "arch/x86").mkdir(parents=True, exist_ok=True)
    return list(find_mentions(tmp_path).by_option.get(option, ()))


@pytest.mark.parametrize(
    ("text", "reaches"),
    [
        ("obj-$(CONFIG_X) += a.o b.o", [("mm/a.o", True), ("mm/b.o", True)]),
        ("obj-$(CONFIG_X)\t+= a.o \\\n\t\tb.o", [("mm/a.o", True), ("mm/b.o", True)]),
        ("lib-$(CONFIG_X) += a.o", [("mm/a.o", True)]),
        ("obj-$(CONFIG_X) += kasan/", [("mm/kasan/", True)]),
        ("whole-$(CONFIG_X) += part.o", [("mm/part.o", True)]),
        (
            "obj-$(CONFIG_X) += whole.o\nwhole-y := a.o sub/b.o\nwhole-objs += c.o",
            [("mm/whole.o", True), ("mm/a.o", True), ("mm/sub/b.o", True), ("mm/c.o", True)],
        ),
        ("ifdef CONFIG_X\nobj-y += a.o\nendif\nobj-y += b.o", [("mm/a.o", True)]),
        ("ifeq ($(CONFIG_X),y)\nelse\nobj-y += a.o\nendif", [("mm/a.o", True)]),
        ("ifdef CONFIG_Y\nelse ifdef CONFIG_X\nobj-y += a.o\nendif", [("mm/a.o", True)]),
        ("ifdef CONFIG_X\nifdef CONFIG_Y\nobj-y += a.o\nendif\nendif", [("mm/a.o", True)]),
        ("CFLAGS_a.o += $(if $(CONFIG_X),-O3)", [("mm/a.o", False)]),
        ("ifdef CONFIG_X\nCFLAGS_REMOVE_a.o = -pg\nendif", [("mm/a.o", False)]),
        ("KASAN_SANITIZE_a.o := $(CONFIG_X)", [("mm/a.o", False)]),
        ("ccflags-$(CONFIG_X) += -DDEBUG", [("mm/", False)]),
        ("subdir-ccflags-$(CONFIG_X) += -DDEBUG", [("mm/", False)]),
        ("flags := $(CONFIG_X)", [("mm/", False)]),
        ("obj-y += $(if $(CONFIG_X),a.o)", [("mm/", True)]),
        ("obj-y += a.o # not $(CONFIG_X)", []),
        ("obj-$(CONFIG_XY) += a.o", []),
    ],
)
def test_lines(tmp_path: Path, text: str, reaches: list[tuple[str, bool]]) -> None:
    found = mentions(tmp_path, {"mm/Makefile": text + "\n"})
    assert [(mention.reaches, mention.lists) for mention in found] == reaches


@pytest.mark.parametrize(
    ("name", "reaches"),
    [
        ("Makefile", ""),
        ("Kbuild", ""),
        ("arch/x86/Makefile", ""),
        ("arch/x86/kernel/Makefile", "arch/x86/kernel/"),
        ("scripts/Makefile.lib", ""),
        ("scripts/link-vmlinux.sh", ""),
        ("drivers/tty/Kbuild", "drivers/tty/"),
    ],
)
def test_folders(tmp_path: Path, name: str, reaches: str) -> None:
    found = mentions(tmp_path, {name: "if flags $(CONFIG_X)\n"})
    assert found == [Mention(f"{name}:1", reaches)]


@pytest.mark.parametrize(
    "name",
    [
        "arch/arm/Makefile", "arch/x86/boot/Makefile", "tools/Makefile", "Documentation/Makefile",
        "scripts/tags.sh", "mm/notes.txt",
    ],
)  # fmt: skip
def test_what_makes_nothing_of_the_kernel_is_left_out(tmp_path: Path, name: str) -> None:
    assert mentions(tmp_path, {name: "flags $(CONFIG_X)\n"}) == []


def test_top_makefile_lists_folders(tmp_path: Path) -> None:
    found = mentions(tmp_path, {"Kbuild": "\nobj-$(CONFIG_X) += block/\n"})
    assert found == [Mention("Kbuild:2", "block/", True)]
    found = mentions(tmp_path, {"Kbuild": "", "arch/x86/Makefile": "drivers-$(CONFIG_X) += a/p/\n"})
    assert found == [Mention("arch/x86/Makefile:1", "a/p/", True)]


def test_makefile_that_makes_headers_reaches_everything(tmp_path: Path) -> None:
    text = "out := arch/x86/include/generated\nsyscalls-$(CONFIG_X) += unistd_32.h\n"
    found = mentions(tmp_path, {"arch/x86/entry/syscalls/Makefile": text})
    assert [mention.reaches for mention in found] == [""]


def test_what_a_mention_covers() -> None:
    assert Mention("", "mm/").covers("mm/kasan/a.o")
    assert not Mention("", "mm/").covers("mmu/a.o")
    assert Mention("", "mm/a.o").covers("mm/a.o")
    assert not Mention("", "mm/a.o").covers("mm/a.old.o")
    assert Mention("", "").covers("anything.o")
