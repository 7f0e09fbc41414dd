# SPDX-License-Identifier: GPL-2.0-or-later
"""The words of a command line -> the kernels that they name."""

import pytest

from kdelta.spec.errors import UserError
from kdelta.spec.words import compared_words, parse_kernel_words, with_change


@pytest.mark.parametrize(
    ("words", "kernels"),
    [
        ([], []),
        (["./x"], ["tree:./x"]),
        (["deb:aa", "image:/v"], ["deb:aa", "image:/v"]),
        (["./x", "+a.patch", "+CONFIG_A=y"], ["tree:./x +a.patch +CONFIG_A=y"]),
        (["./x", "+a.patch", "deb:bb"], ["tree:./x +a.patch", "deb:bb"]),
        (["./x", "./y", "+a.patch"], ["tree:./x", "tree:./y +a.patch"]),
        (
            ["./x", "+a.patch", "+", "+b.patch", "+", "+c.patch"],
            ["tree:./x +a.patch", "tree:./x +a.patch +b.patch", "tree:./x +a.patch +c.patch"],
        ),
        (
            ["./x", "./y", "+", "+b.patch"],
            ["tree:./x", "tree:./y", "tree:./x +b.patch"],
        ),
        (
            ["ARCH=arm64", "./x", "+CC=gcc", "CC=clang", "git:r@v1", "deb:aa"],
            ["tree:./x +ARCH=arm64 +CC=clang +CC=gcc", "git:r@v1 +ARCH=arm64 +CC=clang", "deb:aa"],
        ),
        (
            ["LLVM=1", "./x", "+", "+a.patch"],
            ["tree:./x +LLVM=1", "tree:./x +LLVM=1 +a.patch"],
        ),
        (["tree:./x +a.patch", "+b.patch"], ["tree:./x +a.patch +b.patch"]),
        (["deb:aa", "+cmdline:a", "+cmdline:b=1"], ["deb:aa +cmdline:a +cmdline:b=1"]),
        (
            ["deb:aa", "+", "+cmdline:a b", "image:/v", "+cmdline:c"],
            ["deb:aa", "deb:aa '+cmdline:a b'", "image:/v +cmdline:c"],
        ),
    ],
)
def test_kernels_of_words(words: list[str], kernels: list[str]) -> None:
    assert [str(kernel) for kernel in parse_kernel_words(words)] == kernels


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["+a.patch", "./x"], "a change without a kernel: +a.patch", "kernel first"),
        (["+", "./x"], "a change without a kernel: +", "kernel first"),
        (["./x", "+"], "a lone + has no changes", "+ +fix.patch"),
        (["./x", "+", "+", "+a.patch"], "a lone + has no changes", "+ +fix.patch"),
        (["./x", "+", "./y"], "a lone + has no changes", "+ +fix.patch"),
        (["deb:aa", "+a.patch"], "cannot be changed", "deb-src:"),
        (["deb:aa", "+", "+a.patch"], "cannot be changed", "deb-src:"),
        (["image:./vmlinux", "+order:o"], "cannot be changed", "PATH +FILE.config +order:o"),
        (["deb:aa", "+sections"], "cannot be changed", "section of its own"),
        (["./x", "O=/tmp/out"], "O= cannot be given", "folders of its own"),
        (["./x", "CONFIG_A=y"], "not a kernel spec", "write +CONFIG_A=y"),
        (["deb:aa", "ARCH=arm64"], "ARCH=arm64", "need a source"),
    ],
)
def test_slips(words: list[str], message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_kernel_words(words)
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("words", "kernels"),
    [
        (["./x", "+a.patch"], ["tree:./x", "tree:./x +a.patch"]),
        (["CC=clang", "./x", "+a.patch"], ["tree:./x +CC=clang", "tree:./x +CC=clang +a.patch"]),
        (["./x", "+a.patch", "+", "+b.patch"], ["tree:./x +a.patch", "tree:./x +a.patch +b.patch"]),
        (["./x", "CC=clang"], ["tree:./x +CC=clang"]),
        (["deb:aa"], ["deb:aa"]),
        (["./x", "./y", "+a.patch"], ["tree:./x", "tree:./y +a.patch"]),
        (["./x", "+shuffle:1"], ["tree:./x +sections", "tree:./x +shuffle:1"]),
        (["deb:aa", "+cmdline:nosmt"], ["deb:aa", "deb:aa +cmdline:nosmt"]),
        (
            ["./x", "+cmdline:a", "+shuffle:1"],
            ["tree:./x +cmdline:a +sections", "tree:./x +cmdline:a +shuffle:1"],
        ),
        (["./x", "+sections"], ["tree:./x", "tree:./x +sections"]),
        (
            ["./x", "+a.config", "+order:o", "+align:64"],
            ["tree:./x +a.config +sections", "tree:./x +a.config +order:o +align:64"],
        ),
        (
            ["./x", "+sections", "+", "+shuffle:2"],
            ["tree:./x +sections", "tree:./x +sections +shuffle:2"],
        ),
        (
            ["deb:aa", "+cmdline:a", ",", "+cmdline:b", "+cmdline:c"],
            ["deb:aa", "deb:aa +cmdline:a", "deb:aa +cmdline:b +cmdline:c"],
        ),
        (
            ["CC=clang", "./x", "+a.patch", ",", "+b.patch"],
            ["tree:./x +CC=clang", "tree:./x +CC=clang +a.patch", "tree:./x +CC=clang +b.patch"],
        ),
        (
            ["./x", "+shuffle:1", ",", "+shuffle:2"],
            ["tree:./x +sections", "tree:./x +shuffle:1", "tree:./x +shuffle:2"],
        ),
        (
            ["./x +o.patch", "+shuffle:1", ",", "+shuffle:2"],
            ["tree:./x +o.patch", "tree:./x +o.patch +shuffle:1", "tree:./x +o.patch +shuffle:2"],
        ),
    ],
)
def test_one_changed_kernel_is_compared_with_itself_unchanged(
    words: list[str], kernels: list[str]
) -> None:
    assert [str(kernel) for kernel in compared_words(words)] == kernels


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["./x", ",", "+a.patch"], "a comma without a change on both sides"),
        (["./x", "+a.patch", ","], "a comma without a change on both sides"),
        (["./x", "+a.patch", ",", "+", "+b.patch"], "a comma stands between changes of one kernel"),
        (["./x", "+a.patch", ",", "./y"], "a comma stands between changes of one kernel"),
        ([",", "+a.patch"], "a comma stands between changes of one kernel"),
    ],
)
def test_a_comma_elsewhere_is_a_slip(words: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        compared_words(words)
    assert caught.value.message == message
    assert "KERNEL +a , +b" in caught.value.hint


def test_a_change_of_all_kernels_that_have_any() -> None:
    def words(text: str) -> str:
        return " ".join(with_change(text.split(), "+all"))

    assert words("./a +x.config +CONFIG_B=y + +y.config") == (
        "./a +x.config +CONFIG_B=y +all + +y.config +all"
    )
    assert words("./a +x.config , +y.config") == "./a +x.config +all , +y.config +all"
    assert words("deb:x deb:y +cmdline:psi=0") == "deb:x deb:y +cmdline:psi=0"
