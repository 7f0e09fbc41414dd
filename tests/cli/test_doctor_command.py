# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta doctor`: what it prints and how it ends."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.cli import doctor
from kdelta.host.command import run_program
from kdelta.host.doctor import Check
from tests.cli.studies import Captured, kdelta
from tests.cpus.machines import HASWELL, TURIN


def test_doctor_says_what_helps_and_shows_its_commands(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checks(_: str) -> Iterator[Check]:
        yield Check("QEMU", run_program(["true"]).ok, "7.2.22")
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
    monkeypatch.setattr("kdelta.cli.doctor._all_checks", lambda _: iter([missing]))
    assert kdelta("doctor") == 3
    shown = capsys.readouterr().out
    assert shown.startswith("MISSING  QEMU")
    assert shown.endswith("kdelta cannot work yet: see above\n")


def test_doctor_looks_at_the_store(
    own_cache: Path, own_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_cache.is_dir()
    monkeypatch.setattr("kdelta.cli.doctor.checks", lambda _: iter(()))
    _, _, store, _, kvm = doctor._all_checks()
    assert (store.ok, store.detail) == (True, f"0 runs in {own_data}, all whole")
    assert (kvm.ok, kvm.required) == (False, False)
    (own_data / "store.db").write_bytes(b"garbage" * 1000)
    _, _, store, *_ = doctor._all_checks()
    assert not store.ok
    assert "kdelta check --repair" in store.remedy


def test_doctor_tries_kvm_while_it_makes_the_other_checks(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_cache.is_dir()
    begun = threading.Event()

    def kvm(_: str) -> Check:
        begun.set()
        return Check("KVM", True, "boots 6.1")

    def others(_: str) -> Iterator[Check]:
        yield Check("QEMU", begun.wait(60), "10.0.13")

    monkeypatch.setattr("kdelta.cli.doctor._kvm", kvm)
    monkeypatch.setattr("kdelta.cli.doctor.checks", others)
    found = list(doctor._all_checks())
    assert found[0].ok
    assert found[-1] == Check("KVM", True, "boots 6.1")


def test_doctor_says_what_the_host_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr("kdelta.cpus.cores.CPUINFO", cpuinfo)
    monkeypatch.setattr("kdelta.cli.doctor.checks", lambda _: iter(()))
    monkeypatch.setattr("kdelta.cli.doctor._kvm", lambda _: Check("KVM", False, "not tried"))
    cpuinfo.write_text(TURIN)
    cpu = next(doctor._all_checks())
    assert (cpu.name, cpu.ok, cpu.required) == ("CPU", True, False)
    assert cpu.detail.startswith("this machine's core is that of zen5")
    cpuinfo.write_text(HASWELL)
    cpu = next(doctor._all_checks())
    assert (cpu.ok, cpu.required) == (False, False)
    assert "skylake-server" in cpu.remedy


@pytest.mark.parametrize(
    ("setting", "ok", "said"),
    [("3", True, "limit of the cache 3 GiB"), ("x", False, "KDELTA_CACHE_GIB is no number: 'x'")],
)
def test_doctor_shows_the_limit_of_the_cache(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, setting: str, ok: bool, said: str
) -> None:
    assert own_cache.is_dir()
    monkeypatch.setenv("KDELTA_CACHE_GIB", setting)
    sizes = doctor._sizes()
    assert (sizes.ok, said in sizes.detail) == (ok, True)
