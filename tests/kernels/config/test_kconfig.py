# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of a .config: read, written, derived from a fragment, compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernels.config.kconfig import (
    OptionFlip,
    explain_diff,
    is_generated,
    modules_of,
    parse_config,
    quoted,
    render_config,
    same_value,
    without_modules,
)

HEAD = """#
# Automatically generated file; DO NOT EDIT.
# Linux/x86 6.12.117 Kernel Configuration
#
"""
CONFIGS = st.dictionaries(
    st.from_regex(r"CONFIG_[A-Z0-9_]{1,8}", fullmatch=True),
    st.sampled_from(["y", "m", "n", "0", "-1", "0x1f", '""', '"a b"', '"say \\"x\\""']),
)


def test_lines_of_a_config() -> None:
    text = f"""{HEAD}
CONFIG_A=y
# CONFIG_B is not set
CONFIG_C="a # b"
CONFIG_D=0x10\r
  CONFIG_E=n
# GUP_TEST needs to have DEBUG_FS enabled
#CONFIG_F=y
"""
    assert parse_config(text) == {
        "CONFIG_A": "y",
        "CONFIG_B": "n",
        "CONFIG_C": '"a # b"',
        "CONFIG_D": "0x10",
        "CONFIG_E": "n",
    }


def test_last_line_wins_and_stands_last() -> None:
    found = parse_config("CONFIG_A=y\nCONFIG_B=y\n# CONFIG_A is not set\n")
    assert list(found.items()) == [("CONFIG_B", "y"), ("CONFIG_A", "n")]


@given(CONFIGS)
def test_what_is_written_is_read_again(config: dict[str, str]) -> None:
    again = parse_config(render_config(config))
    assert list(again.items()) == list(config.items())


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("y", "y"),
        ("0x10", "0x10"),
        ("-3", "-3"),
        ("foo", '"foo"'),
        ('"foo"', '"foo"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("", ""),
    ],
)
def test_text_gets_its_quotes_back(value: str, written: str) -> None:
    assert quoted(value) == written


def test_numbers_mean_the_same_in_two_ways() -> None:
    assert same_value("0x10", "0X010")
    assert same_value("16", "0x10")
    assert not same_value('"16"', "16")
    assert not same_value("y", "m")


def test_a_generated_config_names_its_compiler_and_has_many_options() -> None:
    many = "".join(f"CONFIG_X{number}=y\n" for number in range(600))
    compiler = 'CONFIG_CC_VERSION_TEXT="gcc"\nCONFIG_CC_IS_GCC=y\n'
    assert is_generated(compiler + many)
    assert is_generated(HEAD + many + many.replace("X", "Y"))
    assert not is_generated(HEAD + many)
    assert not is_generated(many + many.replace("X", "Y"))
    assert not is_generated(f"{HEAD}{compiler}CONFIG_A=y\n")


def test_without_modules() -> None:
    config = {"CONFIG_A": "m", "CONFIG_B": "y", "CONFIG_C": '"m"'}
    assert without_modules(config) == {"CONFIG_A": "n", "CONFIG_B": "y", "CONFIG_C": '"m"'}
    assert modules_of(config) == ("CONFIG_A",)


def test_differences() -> None:
    before = {"CONFIG_A": "y", "CONFIG_B": "n", "CONFIG_C": "10", "CONFIG_D": "y"}
    after = {"CONFIG_A": "m", "CONFIG_C": "0xa", "CONFIG_D": "y", "CONFIG_E": '"x"'}
    found = explain_diff(before, after)
    assert found == [OptionFlip("CONFIG_A", "y", "m"), OptionFlip("CONFIG_E", "n", '"x"')]
    assert [str(flip) for flip in found] == ["A y -> m", 'E n -> "x"']


@given(CONFIGS, CONFIGS)
def test_differences_the_other_way_round(one: dict[str, str], other: dict[str, str]) -> None:
    found = explain_diff(one, other)
    back = [(flip.option, flip.before, flip.after) for flip in explain_diff(other, one)]
    assert [(flip.option, flip.after, flip.before) for flip in found] == back
    assert explain_diff(one, one) == []
