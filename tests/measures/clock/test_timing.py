# SPDX-License-Identifier: GPL-2.0-or-later
"""Bundles are run here, over SSH, or not at all, with the reason; no test looks at a duration."""

import os
import subprocess
from pathlib import Path

import pytest

from kdelta.host.target import host_target
from kdelta.measures.clock import timing as clock
from kdelta.measures.clock.bundle import LEAST_PROCESSES, make_bundle
from kdelta.spec.errors import LabError, UserError
from tests.conftest import FakeProgram
from tests.measures.clock.clock_results import CPUINFO, results
from tests.measures.clock.small_program import small

pytestmark = pytest.mark.slow

HOST = host_target()
native = pytest.mark.skipif(
    HOST is None or len(os.sched_getaffinity(0)) < 2, reason="needs two cores of a known kind"
)


def made(folder: Path) -> Path:
    assert HOST
    make_bundle(folder / "bundle", [small()], arch=HOST.name, processes=24, budget_seconds=0)
    # As many turns as on a quiet host: where tests run, many passes are disturbed.
    settings = folder / "bundle/settings"
    settings.write_text(settings.read_text().replace(f"LEAST={LEAST_PROCESSES}\n", "LEAST=24\n"))
    return folder / "bundle"


def proc(folder: Path, cpuinfo: str) -> Path:
    """/proc of a host of two cores."""
    folder.mkdir()
    (folder / "cpuinfo").write_text(cpuinfo)
    (folder / "loadavg").write_text("2.50 1.0 1.0 3/100 42\n")
    (folder / "stat").write_text("cpu  0 0 0 1000 0 0 0 0 0 0\n")
    return folder


@native
def test_a_bundle_is_run_and_leaves_its_results_only(tmp_path: Path) -> None:
    folder = made(tmp_path)
    before = {path.name for path in folder.iterdir()}
    said: list[str] = []
    timings = clock.run_here(folder, busy_ok=True, log=said.append)
    assert said == [f"round {number} of 24" for number in range(1, 25)]
    assert {path.name for path in folder.iterdir()} == before | {"RESULTS", "log"}
    assert timings.bundle == clock.manifest_of(folder).id
    (timed,) = timings.programs
    assert timed.name == "small-one"
    assert [link.seed for link in timed.links] == [1, 2]
    assert all(link.cycles > 0 and link.cycles_min > 0 for link in timed.links)
    assert clock.read_results(folder / "RESULTS", busy_ok=True)


@native
def test_without_time_there_are_no_more_turns_than_the_least(tmp_path: Path) -> None:
    folder = made(tmp_path)
    settings = folder / "settings"
    settings.write_text(settings.read_text().replace("LEAST=24\n", f"LEAST={LEAST_PROCESSES}\n"))
    done = subprocess.run(["sh", folder / "run.sh"], stderr=subprocess.PIPE, text=True, check=True)
    turns = range(1, LEAST_PROCESSES + 1)
    assert done.stderr.splitlines() == [f"round {number} of 24" for number in turns]


@native
def test_over_ssh(
    tmp_path: Path, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path)
    remote = tmp_path / "remote"
    remote.mkdir()
    monkeypatch.setenv("TMPDIR", str(remote))
    # What ssh does with its last argument: the user's shell on the machine takes it.
    fake_program("ssh", f'#!/bin/sh\necho "$*" >{tmp_path}/said\nshift 5\nexec sh -c "$1"\n')
    timings = clock.over_ssh("root@board", folder, busy_ok=True)
    assert [one.name for one in timings.programs] == ["small-one"]
    assert "-o BatchMode=yes -C -- root@board" in (tmp_path / "said").read_text()
    assert list(remote.iterdir()) == []
    assert (folder / "RESULTS").is_file()


@native
def test_ssh_that_fails(tmp_path: Path, fake_program: FakeProgram) -> None:
    folder = made(tmp_path)
    fake_program("ssh", "#!/bin/sh\necho 'Permission denied (publickey).' >&2; exit 255\n")
    with pytest.raises(UserError, match=r"board: Permission denied") as refused:
        clock.over_ssh("board", folder)
    assert refused.value.hint == "try it by hand: ssh board true"
    assert not (folder / "RESULTS").exists()


@native
def test_a_connection_that_breaks_off(tmp_path: Path, fake_program: FakeProgram) -> None:
    folder = made(tmp_path)
    whole = tmp_path / "whole"
    whole.write_bytes(results())
    fake_program("ssh", f"#!/bin/sh\ncat >/dev/null; head -c 700 {whole}\n")
    with pytest.raises(UserError, match="was cut off"):
        clock.over_ssh("board", folder)


def test_a_bundle_of_another_architecture(tmp_path: Path) -> None:
    other = next(name for name in ("arm64", "x86_64") if HOST is None or name != HOST.name)
    make_bundle(tmp_path / "bundle", [], arch=other)
    with pytest.raises(UserError, match=f"the bundle is for {other}"):
        clock.run_here(tmp_path / "bundle")


def test_what_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"manifest\.json"):
        clock.run_here(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(LabError, match="has no manifest"):
        clock.run_here(tmp_path)


def test_no_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"no ld\.lld") as refused:
        make_bundle(tmp_path / "bundle", [], arch="x86_64")
    assert "lld" in refused.value.hint


def test_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})
    with pytest.raises(UserError, match="only one core may be used"):
        clock.check_host()


@pytest.mark.parametrize(("busy", "is_refused"), [(0, False), (10, False), (100, True)])
def test_a_busy_host(
    busy: int, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr("time.monotonic", iter([0.0, 1.0]).__next__)
    folder = proc(tmp_path / "proc", CPUINFO)
    later = f"cpu  {busy} 0 0 1000 0 0 0 0 0 0\n"
    monkeypatch.setattr("time.sleep", lambda _seconds: (folder / "stat").write_text(later))
    if not is_refused:
        clock.check_host(proc=folder)
        return
    with pytest.raises(
        UserError, match=r"busy: 1\.0 of its 2 cores, load average 2\.50"
    ) as refused:
        clock.check_host(proc=folder)
    assert "--busy-ok" in refused.value.hint
    clock.check_host(proc=folder, busy_ok=True)


def test_a_clock_that_is_hidden_or_not_steady() -> None:
    clock.check_clock(CPUINFO)
    clock.check_clock("processor : 0\nFeatures : fp asimd\n")
    for flag, said in (
        ("constant_tsc ", "changes with the frequency"),
        ("tsc ", "has no time-stamp"),
    ):
        with pytest.raises(UserError, match=said):
            clock.check_clock(CPUINFO.replace(" " + flag, " "))
