# SPDX-License-Identifier: GPL-2.0-or-later
"""Flags and vulnerabilities of guests as CPU files: those of machines, or listed with a bound."""

import cpu_flags
import msgspec
import pytest
from cpu_flags import END, PAGE, START, GuestFlags, guests, listed, table, unexplained
from forced_cpus import cpus

AMD = ("zen2", "zen3", "zen4", "zen5")
FIVE_LEVELS = {one for one in cpus() if one not in {"zen2", "zen3", "skylake-server"}}


def test_each_cpu_file_has_a_guest_of_each_kernel() -> None:
    found = {(one.cpu, one.release.split("-")[0].rsplit(".", 1)[0]) for one in guests()}
    assert found == {(cpu, series) for cpu in cpus() for series in ("6.1", "6.12", "7.2")}


def test_no_difference_is_without_a_reason_and_no_reason_without_a_difference() -> None:
    assert list(unexplained()) == []
    assert all(one.bound for one in listed().reason)
    assert all(one.bound for one in listed().words)


def test_the_page_has_the_tables() -> None:
    assert PAGE.read_text().partition(START)[2].partition(END)[0].strip() == table()


@pytest.mark.parametrize("one", guests(), ids=lambda one: f"{one.cpu}-{one.release}")
def test_a_guest_looks_like_bare_metal(one: GuestFlags) -> None:
    assert one.taint == 0
    assert "hypervisor" not in one.flags
    assert ("la57" in one.flags) is (one.cpu in FIVE_LEVELS)
    assert "fxsave_leak" not in one.bugs
    is_older = one.cpu in {"zen3", "zen4", "zen5"} and one.release.startswith("6.1.")
    assert ("null_seg" in one.bugs) is is_older
    assert not [
        words
        for file, words in one.vulnerabilities.items()
        if "microcode" in words.lower() and file != "gather_data_sampling" and one.cpu != "zen2"
    ]


def test_a_flag_a_taint_and_words_without_a_reason_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = next(one for one in guests() if one.cpu == "zen4")
    odd = msgspec.structs.replace(
        one,
        taint=4,
        flags=(*one.flags, "hypervisor"),
        vulnerabilities={**one.vulnerabilities, "tsa": "Vulnerable: No microcode"},
    )
    monkeypatch.setattr(cpu_flags, "guests", lambda: (odd, *guests()))
    found = list(unexplained())
    assert len(found) == 3
    assert found[0].endswith("taint 4")
    assert found[1].endswith("AMD EPYC 9654: -hypervisor")
    assert "tsa: Vulnerable: No microcode, and a machine: Mitigation: Clear" in found[2]
