# SPDX-License-Identifier: GPL-2.0-or-later
"""How features are forced in a kernel: by its symbols, and by what is written where."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.machines.forcing import Forcing, forcing_in, symbols_looked_at, symbols_of_build
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import (
    keep_refusal,
    known_forcing,
    known_refusal,
    obtain_forcing,
)
from kdelta.machines.tcg import Guest, Setting, Snapshot
from kdelta.spec.run import RunStatus
from tests.machines.test_debugger import Stub, log

SYMBOLS = b"""\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000100 T start_kernel_of_another
ffffffff83316a80 T start_kernel
ffffffff836e5b00 B cpu_caps_set
ffffffff836e5b60 B cpu_caps_cleared
ffffffff82004500 D x86_cap_flags
ffffffff82005b00 D x86_power_flags
ffffffff82005c00 d cpuinfo_op
"""
"""Of 22 words of features and two of bugs, as Linux 6.1 and 6.12 have."""
NAMES = ("fsrm", "ssbd", "autoibrs", "bhi_ctrl")
GUEST = Guest("a", "/vmlinuz", "x86_64", "/initrd", "i", 0, 512)


def test_addresses_are_those_of_the_symbols() -> None:
    found = forcing_in(NAMES, SYMBOLS)
    assert found == Forcing(NAMES, 0xFFFFFFFF83316A80, 0xFFFFFFFF836E5B00)
    assert found.parameter == ""


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (18, ("ssbd",)),
        (19, ("fsrm", "ssbd")),
        (20, ("fsrm", "ssbd")),
        (21, ("fsrm", "ssbd", "autoibrs")),
        (22, NAMES),
    ],
)
def test_a_word_that_the_kernel_has_not_is_left_out(words: int, names: tuple[str, ...]) -> None:
    """What would be written there are the words after the array's features: its bugs."""
    end = f"{0xFFFFFFFF82004500 + words * 32 * 8:x} D x86_power_flags".encode()
    older = SYMBOLS.replace(b"ffffffff82005b00 D x86_power_flags", end)
    assert forcing_in(NAMES, older).names == names


def test_nothing_is_written_after_the_array() -> None:
    """Whatever the names say: the array has bits of bugs as well, one word at least."""
    shorter = SYMBOLS.replace(b"ffffffff836e5b60", b"ffffffff836e5b58")
    assert forcing_in(NAMES, shorter).names == ("fsrm", "ssbd", "autoibrs")


def test_a_kernel_without_names_of_features_has_the_words_that_all_have() -> None:
    nameless = SYMBOLS.replace(b"x86_cap_flags", b"x86_caps")
    assert forcing_in(NAMES, nameless).names == ("fsrm", "ssbd")


def test_a_boot_parameter_has_all_for_kernels_look_themselves() -> None:
    bare = b"ffffffff83316a80 T start_kernel\n"
    assert forcing_in(NAMES, bare) == Forcing(NAMES, 0xFFFFFFFF83316A80, 0)


def test_the_lines_that_are_kept_say_the_same() -> None:
    modules = b"ffffffffc0000000 t start_kernel_thread\t[a]\nffffffffc0000010 t x\t[a]\n"
    kept = symbols_looked_at(SYMBOLS + modules)
    assert kept.splitlines() == [
        b"ffffffff83316a80 T start_kernel",
        b"ffffffff836e5b00 B cpu_caps_set",
        b"ffffffff836e5b60 B cpu_caps_cleared",
        b"ffffffff82004500 D x86_cap_flags",
        b"ffffffff82005b00 D x86_power_flags",
    ]
    for symbols in (SYMBOLS, SYMBOLS.replace(b"5b00 D", b"5800 D"), SYMBOLS.replace(b"_set", b"")):
        looked_at = symbols_looked_at(symbols)
        assert forcing_in(NAMES, looked_at) == forcing_in(NAMES, symbols)


def test_words_are_written_in_the_kernels_byte_order() -> None:
    stub = Stub(["OK", "OK", "OK"])
    log(stub, forcing_in(("fsrm", "ssbd", "ibrs", "autoibrs"), SYMBOLS).write)
    assert stub.asked == [
        b"$Mffffffff836e5b1c,4:00000202#",
        b"$Mffffffff836e5b48,4:10000000#",
        b"$Mffffffff836e5b50,4:00010000#",
    ]


def test_without_the_array_it_is_a_boot_parameter() -> None:
    without = forcing_in(NAMES, SYMBOLS.replace(b"cpu_caps_set", b"cpu_caps"))
    assert without.array == 0
    assert without.parameter == "setcpuid=580,241,648,674"
    guest = msgspec.structs.replace(GUEST, force=NAMES, forcing=without, append="nopti")
    assert guest.command_line == GUEST.command_line + " setcpuid=580,241,648,674 nopti"


def test_a_guest_is_another_one_with_what_is_forced() -> None:
    assert "force" not in GUEST.snapshot_facts()
    forced = msgspec.structs.replace(GUEST, force=NAMES)
    numbers = {"fsrm": 580, "ssbd": 241, "autoibrs": 648, "bhi_ctrl": 674}
    more = {"force": numbers, "force_format": 2}
    assert forced.snapshot_facts() == {**GUEST.snapshot_facts(), **more}


def test_symbols_of_a_build_lie_next_to_its_image(tmp_path: Path) -> None:
    image = tmp_path / "vmlinux"
    assert symbols_of_build(str(image)) == b""
    (tmp_path / "System.map").write_text("ffffffffffffffff B The_real_one_is_elsewhere\n")
    assert symbols_of_build(str(image)) == b""
    (tmp_path / "System.map").write_bytes(SYMBOLS)
    assert symbols_of_build(str(image)) == SYMBOLS


def test_symbols_of_an_earlier_boot_are_kept_by_kernel(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boots: list[Guest] = []

    async def booted(guest: Guest, _: Setting) -> Snapshot:
        boots.append(guest)
        return Snapshot(own_cache)

    (own_cache / "symbols").write_bytes(SYMBOLS)
    monkeypatch.setattr("kdelta.machines.snapshots.obtain_snapshot", booted)
    asked = msgspec.structs.replace(GUEST, cpu="EPYC", append="quiet", boot=2, force=NAMES)
    other = msgspec.structs.replace(asked, boot=1, memory_mib=1024, force=("fsrm",))
    setting = Setting(own_cache, 1.0)
    assert known_forcing(asked) is None
    found = asyncio.run(obtain_forcing(asked, setting))
    assert isinstance(found, Guest)
    assert found.forcing == forcing_in(NAMES, SYMBOLS)
    assert boots == [msgspec.structs.replace(asked, boot=0, force=())]
    again = asyncio.run(obtain_forcing(other, setting))
    assert isinstance(again, Guest)
    assert again.forcing == forcing_in(("fsrm",), SYMBOLS)
    assert known_forcing(other) == again
    assert known_forcing(msgspec.structs.replace(asked, kernel_identity="b")) is None
    assert len(boots) == 1


def test_what_came_of_forcing_is_kept_by_guest(own_cache: Path) -> None:
    assert own_cache
    asked, other = (msgspec.structs.replace(GUEST, force=force) for force in (NAMES, NAMES[:1]))
    assert known_refusal(asked) is None
    keep_refusal(asked, "it did not take fsrm")
    keep_refusal(other, "")
    assert (known_refusal(asked), known_refusal(other)) == ("it did not take fsrm", "")


@pytest.mark.parametrize(("detail", "expected"), [("hang: last line: x", 1), ("panic: x", 3)])
@pytest.mark.slow
def test_kernel_that_hangs_is_waited_for_once(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, detail: str, expected: int
) -> None:
    boots: list[Guest] = []

    async def boot(guest: Guest, _: Setting) -> GuestOutcome:
        boots.append(guest)
        return GuestOutcome(RunStatus.BOOT_FAILED, detail, "", 600.0, {})

    monkeypatch.setattr("kdelta.machines.snapshots.boot", boot)
    forced = msgspec.structs.replace(GUEST, force=NAMES)
    setting = Setting(own_cache, 600.0)
    for number in range(3):
        guest = msgspec.structs.replace(forced, boot=number)
        found = asyncio.run(obtain_forcing(guest, setting))
        assert isinstance(found, GuestOutcome)
        assert found.detail == detail
    assert len(boots) == expected
