# SPDX-License-Identifier: GPL-2.0-or-later
"""What is told of a relinked kernel's map: small images, linked by good and bad scripts."""

import subprocess
from pathlib import Path

import pytest

from kdelta.kernels.kbuild.linked_map import Linked, linked_map
from kdelta.kernels.kbuild.relink import Relink
from kdelta.kernels.objects.digest import Digest, ObjectDigest
from kdelta.kernels.objects.objects import read_object
from kdelta.spec.errors import LabError

MAIN = ".text .text.[a-gi-tv-z]*"


def script(
    first: str = "", main: str = MAIN, noinstr: str = "*(.noinstr.text)", last: str = ""
) -> str:
    """What is in .text; all is where it belongs unless said otherwise."""
    return (
        f"_stext = .; {first} *(.text.hot.*) *({main}) *(.text.unlikely.*) "
        f"__noinstr_text_start = .; {noinstr} __noinstr_text_end = .; _etext = .; {last}"
    )


class Image:
    """A folder in which objects are assembled and linked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects: dict[str, ObjectDigest] = {}

    def object(self, name: str, *lines: str) -> "Image":
        """An object with functions: "NAME" (in its own section), "SECTION NAME", or assembler."""
        text = ""
        for line in lines:
            words = line.split()
            if line.startswith("\t"):
                text += f"{line}\n"
                continue
            section = words[0] if len(words) == 2 else f".text.{line}"
            text += f'\t.section {section},"ax"\n\t.p2align 4\n\t.type {words[-1]},@function\n'
            text += f"{words[-1]}:\n\tnop\n\tret\n\t.size {words[-1]}, . - {words[-1]}\n"
        source, path = self.folder / f"{name}.s", self.folder / f"{name}.o"
        source.write_text(text)
        subprocess.run(["gcc", "-c", "-o", str(path), str(source)], check=True)
        held = read_object(path.read_bytes())
        assert held is not None
        none: frozenset[str] = frozenset()
        self.objects[path.name] = ObjectDigest(
            path=path.name, source="", module="", options=none, generated=none, is_assembler=True,
            is_opaque=False, functions=held.functions, data=held.data, collected=held.collected,
        )  # fmt: skip
        return self

    def linked(self, relink: Relink, text: str = script()) -> Linked | str:
        """What is told of it, with that in .text."""
        path = self.folder / "script.lds"
        path.write_text(f"SECTIONS {{ . = 0x1000000; .text : {{ {text} }} }}\n")
        words = ["ld", "-e", "0", "-T", str(path), "-o", "vmlinux", *self.objects]
        subprocess.run(words, cwd=self.folder, check=True)
        return linked_map(self.folder / "vmlinux", Digest(self.objects, {}), relink)

    def good(self, relink: Relink, text: str = script()) -> Linked:
        """The same of one with nothing wrong."""
        found = self.linked(relink, text)
        assert isinstance(found, Linked), found
        return found


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


def test_neighbours_of_one_object_are_counted(image: Image) -> None:
    image.object("a", "one", "two", "three").object("b", "four", ".text.unlikely.five five")
    found = image.good(Relink())
    assert found.functions == 5
    assert found.together == 2 / 3


def test_functions_of_one_name_are_left_out(image: Image) -> None:
    image.object("a", "one", "twin").object("b", "twin", "two")
    assert image.good(Relink()).functions == 2
    found = image.good(Relink(order=("twin", "no_such")))
    assert found.unknown == ("no_such",), "a name that two functions have is known"
    assert (found.ordered, found.displaced) == (0, ())


@pytest.mark.parametrize("order", [("one", "two"), ("other", "two"), ("one", "two", "other")])
def test_a_function_of_several_names_is_one(image: Image, order: tuple[str, ...]) -> None:
    alias = "\t.globl other\n\t.type other,@function\n\t.set other, one"
    image.object("a", "one", alias, "two", "four")
    found = image.good(Relink(order=order))
    assert found.functions == 3
    assert (found.ordered, found.displaced, found.unknown) == (2, (), ())


def test_the_longest_part_in_order_is_kept(image: Image) -> None:
    image.object("a", "one", "two", "three", "four", "five")
    found = image.good(Relink(order=("four", "one", "two", "three")))
    assert found.ordered == 3
    assert found.displaced == ("four",)


def test_an_order_that_is_not_in_front_is_none(image: Image) -> None:
    image.object("a", "one", "two", "three", "four", "five")
    found = image.good(Relink(order=("three", "four")))
    assert (found.ordered, found.displaced) == (0, ("three", "four"))


def test_assembler_moves_as_one(image: Image) -> None:
    image.object("a", ".text low", ".text high").object("b", "one", "two")
    found = image.good(Relink(order=("high", "one", "low")))
    assert found.ordered == 2
    assert len(found.displaced) == 1
    image.object("c", "three", ".text last")
    found = image.good(Relink(order=("low", "one", "last")))
    assert (found.ordered, found.displaced) == (3, ())


def test_hot_and_cold_functions_are_in_order_alone(image: Image) -> None:
    image.object("a", ".text.hot.one one", "two", ".text.unlikely.three three", "four")
    found = image.good(Relink(order=("three", "two", "one")))
    assert (found.ordered, found.displaced) == (3, ())


def test_padding_counts_as_the_begin_of_a_function(image: Image) -> None:
    padded = (
        '\t.section .text.one,"ax"\n\t.p2align 6\n__pfx_one:\n\t.skip 16\n\t.type one,@function'
    )
    image.object("a", f"{padded}\none:\tret\n\t.size one, 1", "two", ".text.unlikely.x x")
    found = image.good(Relink(align=64))
    assert found.aligned == {"main": (1, 2), "unlikely": (0, 1)}


def test_a_section_of_its_own_in_the_image_is_wrong(image: Image) -> None:
    image.object("a", "one", "upset")
    found = image.linked(Relink())
    assert isinstance(found, str)
    assert "leaves 1 sections: .text.upset" in found


def test_what_is_not_in_its_section_is_wrong(image: Image) -> None:
    image.object("a", "one", ".noinstr.text two", ".noinstr.text three")
    found = image.linked(Relink(), script(first="*(.noinstr.text)"))
    assert isinstance(found, str)
    assert "two of .noinstr.text lies at 0x1000000, outside" in found


def test_what_is_in_anothers_section_is_wrong(image: Image) -> None:
    image.object("a", "one", ".noinstr.text two", "odd")
    noinstr = "*(.noinstr.text .text.odd)"
    found = image.linked(Relink(), script(main=".text .text.one", noinstr=noinstr))
    assert isinstance(found, str)
    assert "odd of .text.odd lies in .noinstr.text" in found


def test_what_is_after_the_text_is_wrong(image: Image) -> None:
    image.object("a", "one", "odd")
    found = image.linked(Relink(), script(main=".text .text.one", last="*(.text.odd)"))
    assert isinstance(found, str)
    assert "odd of .text.odd" in found


def test_cold_code_among_the_rest_is_wrong(image: Image) -> None:
    image.object("a", "one", ".text.unlikely.cold cold", "two", ".text.unlikely.more more")
    found = image.linked(Relink(), script(main=".text .text.*"))
    assert isinstance(found, str)
    assert "mixed: two of .text.two" in found


def test_a_file_that_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "vmlinux").write_bytes(b"damaged")
    with pytest.raises(LabError, match="no ELF file of a kernel"):
        linked_map(tmp_path / "vmlinux", Digest({}, {}), Relink())
