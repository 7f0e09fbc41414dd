# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot parameters as the kernel reads them, and which of them it did not know."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.spec.errors import UserError
from kdelta.spec.parameters import (
    REFUSED,
    parameter,
    split_parameters,
    unknown_parameters,
)


@pytest.mark.parametrize(
    ("word", "name", "value"),
    [
        ("nosmt", "nosmt", None),
        ("a=", "a", ""),
        ("a=b=c", "a", "b=c"),
        ('a="b c"', "a", "b c"),
        ('"a=b c"', "a", "b c"),
        ('"a b"', "a b", None),
        ('a=b" "c', "a", 'b" "c'),
    ],
)
def test_name_and_value_are_those_that_next_arg_finds(
    word: str, name: str, value: str | None
) -> None:
    assert split_parameters(word) == (word,)
    assert parameter(word) == (name, value)


@given(st.text())
def test_any_text_is_split_without_loss_or_refused(text: str) -> None:
    try:
        words = split_parameters(text)
    except UserError:
        return
    assert "".join(text.split(" ")) == "".join("".join(words).split(" "))
    assert split_parameters(" ".join(words)) == words


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "--"])
def test_each_refused_name_is_refused_with_dashes_too(name: str) -> None:
    for word in (name, f"{name}=1", name.replace("_", "-"), f'"{name}=a b"'):
        with pytest.raises(UserError, match="cannot set the boot parameter"):
            split_parameters(f"audit=0 {word}")
    assert split_parameters(f"{name}x=1") == (f"{name}x=1",)


@pytest.mark.parametrize(
    ("asked", "given_to_init", "unknown"),
    [
        ("a=1 b", [], []),
        ("a=1 b", ["a=1"], ["a=1"]),
        ("a=1 b", ["b"], ["b"]),
        ("a=1 b", ["a", "b=1"], []),
        ("a=1 a=2", ["a=2"], ["a=1", "a=2"]),
        ('a="x y"', ["a=x y"], ['a="x y"']),
        ('"a b"', ["a b"], ['"a b"']),
        ("audit=0", ["nokaslr"], []),
    ],
)
def test_what_the_kernel_gives_its_init_is_unknown(
    asked: str, given_to_init: list[str], unknown: list[str]
) -> None:
    assert unknown_parameters(split_parameters(asked), given_to_init) == unknown


@pytest.mark.parametrize("text", ["'a b'", "audit='0'", "'audit=0'", "audit=0 a='b c'"])
def test_single_quotes_around_a_parameter_or_its_value_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="does not know single quotes"):
        split_parameters(text)


def test_a_single_quote_inside_of_a_value_is_part_of_it() -> None:
    assert split_parameters("a=it's") == ("a=it's",)


def test_single_quotes_within_double_quotes_are_part_of_the_value() -> None:
    assert split_parameters("""a="'b c'" d""") == ("""a="'b c'\"""", "d")


@pytest.mark.parametrize("text", ["a\tb", "a\nb", "a\x01b", "a=\x7f", "a=\u00e9", "a=\udcff"])
def test_control_characters_and_bytes_that_are_no_ascii_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="not printable ASCII"):
        split_parameters(text)
