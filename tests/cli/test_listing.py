# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands that list what is there: runs, kernels, workloads."""

from pathlib import Path

import msgspec
from reading import read_document

from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from tests.cli.captured import without_head
from tests.cli.studies import Captured, kdelta, make_run
from tests.store.test_store import new
from tests.synthetic import own, region, run


def test_runs_and_show(own_data: Path, capsys: Captured) -> None:
    assert kdelta("runs") == 0
    assert capsys.readouterr().out.startswith("no runs yet")
    with Store.open(own_data) as store:
        good = make_run(store, RunStatus.OK).run
        bad = make_run(store, RunStatus.TIMED_OUT, 1, detail="no end after 600 s").run
    assert kdelta("runs") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [bad.id[:8], good.id[:8]]
    assert "timed-out       6.1.0-a" in lines[1]
    assert kdelta("runs", "--json", "-n", "1") == 0
    listed = read_document(capsys.readouterr().out)
    assert [one.run.id for one in listed.runs] == [bad.id]

    assert kdelta("show") == 0
    shown = capsys.readouterr().out
    assert without_head(shown).startswith(
        "No counts of syscalls on 6.1.0-a: timed-out: no end after 600 s."
    )
    assert "  | console 18\n" in shown
    assert "console 17\n" not in shown
    assert kdelta("show", "--console") == 0
    assert capsys.readouterr().out.startswith("console 0\n")
    assert kdelta("show", good.id[:6], "-o", "open-close") == 0
    assert "open-close: 3209.27 instructions an iteration" in capsys.readouterr().out
    assert kdelta("show", good.id, "--json") == 0
    document = read_document(capsys.readouterr().out)
    assert document.run.run.id == good.id
    assert kdelta("show", "zzz") == 2
    assert capsys.readouterr().err == (
        "kdelta: no study and no run is called 'zzz'\n"
        "hint: kdelta report --list lists the studies, kdelta runs the runs\n"
    )
    assert kdelta("show", good.id, "-o", "frobnicate") == 2


def test_runs_name_what_each_measured_and_what_differs_of_its_kernel(
    own_data: Path, capsys: Captured
) -> None:
    release = "6.1.0-56-cloud-amd64"
    of = [["getppid", "uname"], ["command"], [f"operation-{n}" for n in range(9)], []]
    with Store.open(own_data) as store:
        for names in of:
            spec = f"deb:linux-image-{release} +cmdline:psi=0"
            one = msgspec.structs.replace(new(), kernel_spec=spec, kernel_release=release)
            counts = run(*(region(name, {own("f"): 9}) for name in names)) if names else None
            store.finish_run(store.start_run(one), RunStatus.OK, counts=counts)
        blob = store.runs(4)[1].counts_blob
    assert kdelta("runs") == 0
    lines = capsys.readouterr().out.splitlines()[:0:-1]
    assert all(f" {release} with psi=0 " in line for line in lines)
    ends = [line.rpartition("syscalls ")[2] for line in lines]
    assert ends == ["#1: getppid, uname", "#1", "#1: 9 regions", "#1"]
    assert blob
    (own_data / "blobs" / blob[:2] / blob[2:]).write_bytes(b"garbage")
    assert kdelta("runs") == 0
    assert "9 regions" not in capsys.readouterr().out


def test_control_characters_of_a_guest_are_visible(own_data: Path, capsys: Captured) -> None:
    evil = "\x1b]52;c;cm0=\x07\x9b2J"
    with Store.open(own_data) as store:
        run_id = store.start_run(new())
        store.finish_run(
            run_id, RunStatus.BOOT_FAILED, detail=evil, console=evil, kernel_release=f"6.1{evil}"
        )
    for words in (["runs"], ["runs", "--json"], ["show"], ["show", "--console"], ["show", evil]):
        kdelta(*words)
        shown = capsys.readouterr()
        assert "".join((shown.out + shown.err).split("\n")).isprintable()


def test_a_damaged_blob(own_data: Path, capsys: Captured) -> None:
    with Store.open(own_data) as store:
        blob = make_run(store, RunStatus.OK).run.counts_blob
    assert blob is not None
    (own_data / "blobs" / blob[:2] / blob[2:]).write_bytes(b"garbage")
    assert kdelta("show") == 3
    assert "is damaged" in capsys.readouterr().err


def test_workloads_and_kernels(own_cache: Path, capsys: Captured) -> None:
    assert own_cache.is_dir()
    assert kdelta("workloads") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("aes: ")
    assert "\nsyscalls: " in shown
    assert "\n    getppid " in shown
    assert "\n    -w wisconsin:loops=N " in shown
    assert shown.count("\n    join-aselb ") == 1
    assert "\n    the operations of wisconsin\n" in shown
    assert kdelta("kernels") == 0
    assert capsys.readouterr().out.startswith("no kernels here yet")
