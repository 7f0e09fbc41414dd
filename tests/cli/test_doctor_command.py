# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta doctor`: what it prints and how it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.cli import doctor
from kdelta.host.command import run
from kdelta.host.doctor import Check
from tests.cli.studies import Captured, kdelta


def test_doctor_says_what_helps_and_shows_its_commands(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checks() -> Iterator[Check]:
        yield Check("QEMU", run(["true"]).ok, "7.2.22")
        yield Check("zstd", False, "missing", "apt-get install zstd", required=False)

    monkeypatch.setattr("kdelta.cli.doctor._all_checks", checks)
    assert kdelta("doctor") == 0
    quiet = capsys.readouterr()
    assert quiet.out == (
        "ok       QEMU              7.2.22\n"
        "no       zstd              missing\n"
        "                           -> apt-get install zstd\n"
        "all that kdelta needs is there\n"
    )
    assert quiet.err == ""
    assert kdelta("doctor", "-v") == 0
    assert capsys.readouterr().err == "+ true\n"


def test_doctor_fails_when_something_is_missing(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = Check("QEMU", False, "the program is missing", "apt-get install qemu")
    monkeypatch.setattr("kdelta.cli.doctor._all_checks", lambda: iter([missing]))
    assert kdelta("doctor") == 3
    shown = capsys.readouterr().out
    assert shown.startswith("MISSING  QEMU")
    assert shown.endswith("kdelta cannot work yet: see above\n")


def test_doctor_looks_at_the_store(
    own_cache: Path, own_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_cache.is_dir()
    monkeypatch.setattr("kdelta.cli.doctor.checks", lambda: iter(()))
    store, kvm = doctor._all_checks()
    assert (store.ok, store.detail) == (True, f"0 runs in {own_data}, all whole")
    assert (kvm.ok, kvm.required) == (False, False)
    (own_data / "store.db").write_bytes(b"garbage" * 1000)
    store, _ = doctor._all_checks()
    assert not store.ok
    assert "out of the way" in store.remedy
