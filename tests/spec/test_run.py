# SPDX-License-Identifier: GPL-2.0-or-later
"""Perturbations and identities: the same from the same, different from the different."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.spec.errors import KdeltaError, LabError, UserError
from kdelta.spec.identity import canonical_json, identity, short_id
from kdelta.spec.run import PHASE_NS, MachineOptions, Perturbation, perturbation, turn_us


def test_index_zero_is_not_shaken() -> None:
    assert perturbation(0) == Perturbation(0, "", 0, 0)


def test_perturbations_repeat_and_differ() -> None:
    shaken = [perturbation(index) for index in range(500)]
    assert shaken == [perturbation(index) for index in range(500)]
    assert len({one.seed for one in shaken}) == 500
    assert len({one.phase_ns for one in shaken}) == 500
    assert len({one.pages for one in shaken}) > 100


def test_a_perturbation_never_changes_between_versions() -> None:
    assert perturbation(1) == Perturbation(
        index=1,
        seed="2e46c556e17bf40cf462e657e7e55c4e",
        pages=755,
        phase_ns=23023014,
        warm_up_percent=117,
        boot=1,
    )


@given(st.integers(1, 10**9))
def test_perturbations_are_in_range(index: int) -> None:
    shaken = perturbation(index)
    assert len(bytes.fromhex(shaken.seed)) == 16
    assert shaken.pages % 2 == 1
    assert 100 < shaken.pages < 1100
    assert 0 < shaken.phase_ns < PHASE_NS


def test_turns_are_short_in_perturbed_runs() -> None:
    assert turn_us(0) == 0
    turns = [turn_us(index) for index in range(1, 500)]
    assert turns[:4] == [5, 38, 4, 8]  # as runs that are kept have them
    assert min(turns) == 1
    assert max(turns) == 100
    # As many between 1 and 10 as between 10 and 100.
    assert 200 < sum(turn < 10 for turn in turns) < 300


def test_no_perturbation_below_zero() -> None:
    with pytest.raises(UserError, match="-1"):
        perturbation(-1)


def test_identity_is_the_hash_of_sorted_json() -> None:
    assert canonical_json({"b": 1, "a": [True, None]}) == b'{"a":[true,null],"b":1}'
    # printf '{"a":1,"b":2}' | sha256sum
    expected = "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"
    assert identity({"b": 2, "a": 1}) == expected
    assert short_id(expected) == "43258cff783f"


def test_options_with_another_value_have_another_identity() -> None:
    options = [
        MachineOptions(),
        MachineOptions(memory_mib=512),
        MachineOptions(cpu="max"),
        MachineOptions(qemu="/opt/qemu"),
        MachineOptions(append="quiet"),
    ]
    assert len({identity(one) for one in options}) == len(options)


def test_errors_carry_what_to_do() -> None:
    for kind in (UserError, LabError):
        error = kind("no QEMU", "install it")
        assert isinstance(error, KdeltaError)
        assert (str(error), error.message, error.hint) == ("no QEMU", "no QEMU", "install it")
        assert kind("no QEMU").hint == ""
