# SPDX-License-Identifier: GPL-2.0-or-later
"""Which options can be switched at boot, and by which words."""

import pytest

from kdelta.kernels.config.switches import BootSwitch, boot_switch

DEBUG = {"CONFIG_SLUB_DEBUG": "y", "CONFIG_SLUB_DEBUG_ON": "y"}


def test_an_option_that_only_decides_a_default() -> None:
    found = boot_switch([("CONFIG_SLUB_DEBUG_ON", "n")], DEBUG)
    assert found == BootSwitch("slub_debug=-", ("CONFIG_SLUB_DEBUG_ON",), "default")


def test_what_must_be_compiled_in_is() -> None:
    assert boot_switch([("CONFIG_SLUB_DEBUG_ON", "y")], {"CONFIG_SLUB_DEBUG": "n"}) is None
    assert boot_switch([("CONFIG_HARDENED_USERCOPY", "n")], {}) is None


def test_a_value_without_a_word_cannot_be_switched() -> None:
    config = {"CONFIG_HARDENED_USERCOPY": "y"}
    assert boot_switch([("CONFIG_HARDENED_USERCOPY", "y")], config) is None
    found = boot_switch([("CONFIG_HARDENED_USERCOPY", "n")], config)
    assert found is not None
    assert (found.words, found.share) == ("hardened_usercopy=off", "part")


def test_a_unit_is_switched_only_in_part_when_one_of_its_options_has_no_switch() -> None:
    flips = [("CONFIG_SLUB_DEBUG_ON", "n"), ("CONFIG_STACKDEPOT_ALWAYS_INIT", "n")]
    found = boot_switch(flips, DEBUG)
    assert found is not None
    assert found.share == "part"
    assert found.options == ("CONFIG_SLUB_DEBUG_ON",)


@pytest.mark.parametrize("order", [1, -1])
def test_words_that_two_options_share_stand_once(order: int) -> None:
    config = {
        "CONFIG_MITIGATION_PAGE_TABLE_ISOLATION": "y",
        "CONFIG_PAGE_TABLE_ISOLATION": "y",
    }
    found = boot_switch([(name, "n") for name in config][::order], config)
    assert found is not None
    assert found.words == "pti=off"


def test_a_choice_is_switched_by_the_member_that_becomes_set() -> None:
    flips = [("CONFIG_PREEMPT_VOLUNTARY", "n"), ("CONFIG_PREEMPT_NONE", "y")]
    found = boot_switch(flips, {"CONFIG_PREEMPT_DYNAMIC": "y"})
    assert found is not None
    assert found.words == "preempt=none"
    assert boot_switch(flips, {}) is None
