# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile` and `kdelta diff` on runs of the store, as a user calls them."""

import re
import shutil
from pathlib import Path

import pytest
from reading import read_document

from kdelta.spec.run import RunStatus
from tests.cli.captured import Captured, failed, kdelta, stored
from tests.report.example import base_counts, other_counts
from tests.synthetic import own, region, run, user


def test_a_profile(own_data: Path, capsys: Captured) -> None:
    made = stored(own_data, base_counts(0))
    assert kdelta("profile", made.id[:5], "-o", "open-close", "--functions", "2") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("320927 instructions in 1 region and 18 functions. Most:\n")
    words = " ".join(shown.split())
    assert f" run {made.id}, " in words
    assert " regions open-close x100 " in words
    assert " link_path_walk.part.0.constprop.0 130044 40.5% " in words
    assert " other functions (16) " in words
    assert " total 320927 100.0% " in words
    assert kdelta("profile", "--sort", "loads", "--context", "all", "--code", "kernel") == 0
    shown = capsys.readouterr().out
    assert "do_sys_openat2.isra.0" in shown
    assert "Left out of the functions: modules and user code (--code)." in shown
    assert kdelta("profile", "last", "--json", "-o", "getppid") == 0
    document = read_document(capsys.readouterr().out)
    assert document.run.run.id == made.id
    assert [one.name for one in document.regions] == ["getppid"]
    assert len(document.left_out) == 8


def test_what_a_command_did_before_its_own_regions_is_left_out(
    own_data: Path, capsys: Captured
) -> None:
    stored(own_data, run(region("command", {own("execve"): 7}), region("mine", {own("f"): 5})))
    assert kdelta("profile") == 0
    shown = capsys.readouterr().out
    assert "\nregions   mine x100\nwithout   command\n" in shown
    assert "execve" not in shown
    assert kdelta("profile", "-o", "command") == 0
    assert "execve" in capsys.readouterr().out
    stored(own_data, run(region("command", {own("execve"): 7})))
    assert kdelta("profile") == 0
    assert "execve" in capsys.readouterr().out


def test_a_difference(own_data: Path, capsys: Captured) -> None:
    a, b = stored(own_data, base_counts(0)), stored(own_data, other_counts(0))
    assert kdelta("diff", a.id, b.id, "-o", "open-close") == 0
    shown = capsys.readouterr().out
    assert re.search(r"_wide_enough_for\n +\+30025 +0% ", shown)
    assert re.search(r"\ntotal +-17812 +-5.55% ", shown)
    assert kdelta("diff", a.id, b.id, "--json", "--context", "all", "--figure", "special") == 0
    document = read_document(capsys.readouterr().out)
    assert document.by == "special"
    assert document.selection.contexts == ["own", "interrupts", "other"]
    assert document.notes == [
        "Only A has the regions remap-file-pages.",
        "Only B has the regions futex-wake.",
    ]
    assert {"remap-file-pages", "futex-wake"} == set(document.left_out)


def test_the_other_way_round(own_data: Path, capsys: Captured) -> None:
    a, b = stored(own_data, base_counts(0)), stored(own_data, other_counts(0))
    documents = []
    for pair in ((a, b), (b, a)):
        assert kdelta("diff", *(one.id for one in pair), "--json") == 0
        documents.append(read_document(capsys.readouterr().out))
    there, back = (
        {one.match.name: one.b - one.a for one in document.lines} for document in documents
    )
    assert sum(there.values()) != 0
    assert there == {name: -added for name, added in back.items()}


def test_other_numbers_of_iterations(own_data: Path, capsys: Captured) -> None:
    a = stored(own_data, run(region("r", {own("f"): 300}, 100), region("s", {own("f"): 10}, 10)))
    b = stored(own_data, run(region("r", {own("f"): 900}, 200), region("s", {own("f"): 30}, 10)))
    assert kdelta("diff", a.id, b.id) == 0
    shown = capsys.readouterr().out
    assert "one pass of each region" in shown
    assert "r went through 100 iterations in A and 200 in B" in shown
    # 300/100 + 10/10 is 4, 900/200 + 30/10 is 7.50.
    assert re.search(r"\nf +\+3.50 +\+87.5% ", shown)
    assert re.search(r"\ntotal +\+3.50 +\+87.5% ", shown)


def test_regions_of_other_lengths_weigh_the_same(own_data: Path, capsys: Captured) -> None:
    a = stored(own_data, run(region("r", {own("f"): 100}, 100), region("s", {own("g"): 10}, 10)))
    b = stored(own_data, run(region("r", {own("f"): 300}, 100), region("s", {own("g"): 60}, 10)))
    assert kdelta("diff", a.id, b.id) == 0
    shown = capsys.readouterr().out
    assert "one pass of each region" in shown
    flat = " ".join(shown.split())
    assert "g +5 +500.0% 1 6 f +2 +200.0% 1 3 total +7 +350.0% 2 9" in flat
    assert kdelta("diff", a.id, b.id, "--whole") == 0
    shown = capsys.readouterr().out
    assert "whole regions" in shown
    flat = " ".join(shown.split())
    assert "f +200 +200.0% 100 300 g +50 +500.0% 10 60 total +250 +227.3% 110 360" in flat


def test_runs_that_cannot_be_compared(own_data: Path, capsys: Captured) -> None:
    a = stored(own_data, base_counts(0))
    b = stored(
        own_data, base_counts(0), workload="nat", cpu="cortex-a9", memory_mib=512, qemu="9.0"
    )
    failed(
        ["diff", a.id, b.id],
        [
            "cannot be compared",
            "workload syscalls and nat",
            "CPU qemu64,+ssse3 and cortex-a9",
            "memory in MiB 1024 and 512",
            "QEMU 7.2.22 and 9.0",
        ],
        capsys,
    )
    c = stored(own_data, run(region("mine", {own("f"): 5})))
    failed(["diff", a.id, c.id], ["no region in common", "B has: mine"], capsys)
    failed(["diff", a.id, c.id, "-o", "mine"], ["A has no region 'mine'"], capsys)
    failed(["diff", a.id, a.id, "--figure", "calls"], ["not compared by calls"], capsys)
    failed(["diff", a.id, "nonesuch"], ["no run is called 'nonesuch'"], capsys)


def test_what_differs_besides_the_kernels_is_reported(own_data: Path, capsys: Captured) -> None:
    a = stored(own_data, base_counts(0))
    b = stored(own_data, base_counts(1), perturbation=1, append="mitigations=off")
    assert kdelta("diff", a.id, b.id) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "The kernels' command lines differ: '' and 'mitigations=off'." in shown
    assert "The runs were perturbed differently, 0 and 1:" in shown


@pytest.mark.parametrize("command", ["profile", "diff"])
def test_a_run_without_counts(command: str, own_data: Path, capsys: Captured) -> None:
    bad = stored(own_data, None, status=RunStatus.BOOT_FAILED)
    arguments = [command, *[bad.id] * (1 if command == "profile" else 2)]
    words = [f"run {bad.id} counted nothing, it ended with boot-failed: why not", "kdelta show"]
    failed(arguments, words, capsys)
    good = stored(own_data, base_counts(0))
    shutil.rmtree(own_data / "blobs")
    arguments = [command, *[good.id] * (1 if command == "profile" else 2)]
    failed(arguments, ["the store has lost a blob", "--rerun"], capsys, code=3)
    empty = stored(own_data, run())
    arguments = [command, *[empty.id] * (1 if command == "profile" else 2)]
    failed(arguments, ["has no region"], capsys)


def test_a_region_that_is_not_there(own_data: Path, capsys: Captured) -> None:
    stored(own_data, base_counts(0))
    failed(
        ["profile", "-o", "open-clsoe"],
        ["the run has no region 'open-clsoe'", "it has: open-close"],
        capsys,
    )


def test_a_run_compared_with_itself(own_data: Path, capsys: Captured) -> None:
    stored(own_data, base_counts(0))
    assert kdelta("diff", "last", "last", "--json") == 0
    document = read_document(capsys.readouterr().out)
    assert document.notes == ["A and B are one run, so nothing differs."]
    assert {one.b - one.a for one in document.lines} == {0}
    stored(own_data, base_counts(0))
    assert kdelta("diff", document.a.run.id, "last", "--json") == 0
    assert read_document(capsys.readouterr().out).notes == []


def test_a_program_of_any_name(own_data: Path, capsys: Captured) -> None:
    name = "$(reboot) <b>"
    made = stored(own_data, run(region(name, {user(name, "a'b;c"): 5, own("f"): 3})))
    assert kdelta("profile", "-o", name) == 0
    assert "$(reboot) <b> a'b;c\n" in capsys.readouterr().out
    assert kdelta("diff", made.id, made.id) == 0
    assert "-o" not in capsys.readouterr().err


def test_a_kernel_without_symbols(own_data: Path, capsys: Captured) -> None:
    bare = run(region("r", {own("[no symbol]"): 70, own("[no symbol]", "[m]"): 5, user("f"): 3}))
    a = stored(own_data, bare)
    said = "No symbols, so functions are not distinguished, in: kernel, [m]."
    assert kdelta("profile") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown
    assert "CONFIG_KALLSYMS=y" in shown
    assert "total 78 100.0%" in shown
    assert kdelta("profile", "--code", "user") == 0
    assert "No symbols" not in capsys.readouterr().out
    b = stored(own_data, run(region("r", {own("f"): 70, user("f"): 3})))
    assert kdelta("diff", a.id, b.id) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "No symbols in A, so functions are not distinguished, in: kernel, [m]." in shown
    assert "in B" not in shown.partition("No symbols")[2]
