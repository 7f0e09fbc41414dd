# SPDX-License-Identifier: GPL-2.0-or-later
"""Which versions of a file a build cannot distinguish; the compiler is asked for C."""

import shutil
import subprocess

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from kdelta.kernels.sources.same_text import is_same

CONFIG = {"CONFIG_ON": "y", "CONFIG_MODULE": "m", "CONFIG_OFF": "n"}


def same(before: str, after: str, path: str = "mm/slub.c") -> bool:
    forward = is_same(path, before.encode(), after.encode(), [CONFIG])
    assert is_same(path, after.encode(), before.encode(), [CONFIG]) == forward
    return forward


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int a; /* one */\n", "int a; // another\n"),
        ("/* one */\nint a;\n", "/* two words */\nint a;\n"),
        ("/*\n * one\n */\nint a;\n", "// one\n// two\n// three\nint a;\n"),
        ("int a;\n", "int a;\n\n/* at the end */\n"),
        ("int  a;\t/* x */\n", "\tint a;\n"),
        ("int/* x */a;\n", "int a;\n"),
        ('char *s = "/* no */"; /* a */\n', 'char *s = "/* no */"; /* b */\n'),
        ("char c = '\"'; // a\n", "char c = '\"'; // b\n"),
        ("// one \\\n two\nint a;\n", "// one\n\nint a;\n"),
        ("# don't\n/* a */\n", "# don't\n/* b */\n"),
    ],
)
def test_comments_and_spaces_are_no_matter(before: str, after: str) -> None:
    assert same(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int a;\n", "int b;\n"),
        ("/* one */\nint a;\n", "/* one\n * two */\nint a;\n"),
        ('char *s = "a  b";\n', 'char *s = "a b";\n'),
        ('char *s = "/* one */";\n', 'char *s = "/* two */";\n'),
        ('char *s = "// one";\n', 'char *s = "// two";\n'),
        ("char c = '\"'; // \"\nint a;\n", "char c = '\"'; int b; // \"\nint a;\n"),
        ("int a/**/b;\n", "int ab;\n"),
        ("#define X a+b\n", "#define X a + b\n"),
        ("#define X \\\n\ta\n", "#define X\n\ta\n"),
        ("// one \\\nint a;\n", "// one\nint a;\n"),
        ('a "open\n', 'a "opens\n'),
        ("/* open\n", "/* opens\n"),
        ("# don't /* a */\n", "# don't /* b */\n"),
        ("'/* a */", "'/*\n*/"),
        ("\\ /* a */\n", "\\  \n"),
        ("/\\\n/* a */", "/\\\n/*\n*/"),
        ("# don't \\\n// a\n", "# don't \\\n// b\n"),
        ('a "open /* a */\n', 'a "open /* b */\n'),
    ],
)
def test_all_else_is(before: str, after: str) -> None:
    assert not same(before, after)


SHARED = st.sampled_from(
    ["int", "__LINE__ ", "b;", " ", "\n", "/*", "*/", "//", "\\\n", '"', "'", "/", "*", "\\", "#"]
)
COMMENT = st.sampled_from(["/* a */", "/* ' */", "/*\n*/", "// a", '// "', "// \\\n", " ", "\t"])
PAIRS = st.lists(st.one_of(SHARED.map(lambda piece: (piece, piece)), st.tuples(COMMENT, COMMENT)))


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@given(PAIRS)
def test_the_compiler_sees_the_same_in_what_is_called_the_same(
    pairs: list[tuple[str, str]],
) -> None:
    before, after = ("".join(pieces) for pieces in zip(*pairs, strict=True)) if pairs else ("", "")
    if before != after and same(before, after):
        event("the same")
        assert preprocessed(before) == preprocessed(after)


def preprocessed(text: str) -> tuple[int, str]:
    """How gcc ended, and the tokens that it saw."""
    argv = ["gcc", "-E", "-P", "-w", "-x", "c", "-"]
    done = subprocess.run(argv, check=False, input=text, capture_output=True, text=True)
    return done.returncode, " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("obj-y += a.o\n", "# new\nobj-y += a.o\n\n"),
        ("obj-y += a.o\n", "obj-y += a.o\nobj-$(CONFIG_OFF) += b.o\n"),
        ("obj-y += a.o\n", "obj-y += a.o\nobj-$(CONFIG_UNKNOWN) += b.o c/ \\\n\td.o\n"),
        ("foo-y := a.o\n", "foo-y := a.o\nfoo-$(CONFIG_OFF) += b.o\n"),
    ],
)
def test_lists_of_what_the_config_does_not_have_are_no_matter(before: str, after: str) -> None:
    assert same(before, after, "mm/Makefile")
    assert not same(before, after, "mm/slub.tbl")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("obj-y += a.o\n", "obj-y += a.o b.o\n"),
        ("obj-y += a.o\n", "obj-y += a.o\nobj-$(CONFIG_ON) += b.o\n"),
        ("obj-y += a.o\n", "obj-y += a.o\nobj-$(CONFIG_MODULE) += b.o\n"),
        ("obj-y += foo.o\n", "obj-y += foo.o\nfoo-$(CONFIG_OFF) += b.o\n"),
        (
            "ifdef X\nfoo-y := a.o\nendif\n",
            "ifdef X\nfoo-y := a.o\nendif\nfoo-$(CONFIG_OFF) += b.o\n",
        ),
        ("obj-y += a.o\n", "obj-y += a.o\nccflags-$(CONFIG_OFF) += -O3\n"),
        ("obj-y += a.o\n", "obj-y += a.o\nobj-$(CONFIG_OFF) += $(shell touch x)\n"),
        ("a:\n\t# one\n", "a:\n\t# two\n"),
        ("define a\n# one\nendef\n", "define a\n# two\nendef\n"),
        ("# one \\\nobj-y += a.o\n", "# one\nobj-y += a.o\n"),
    ],
)
def test_other_lines_of_makefiles_are(before: str, after: str) -> None:
    assert not same(before, after, "mm/Makefile")


def test_each_config_has_a_log() -> None:
    before, after = b"obj-y += a.o\n", b"obj-y += a.o\nobj-$(CONFIG_OFF) += b.o\n"
    assert is_same("mm/Makefile", before, after, [CONFIG, {}])
    assert not is_same("mm/Makefile", before, after, [CONFIG, {"CONFIG_OFF": "y"}])


def test_equal_files_are_the_same_whatever_they_are() -> None:
    assert is_same("scripts/x.sh", b"a", b"a", [])
    assert not is_same("scripts/x.sh", b"# a", b"# b", [])
