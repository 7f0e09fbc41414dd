# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta compare` and `kdelta run`: their options reach the studies, and what they print."""

import re
from importlib import resources
from pathlib import Path

import msgspec
from reading import read_document

from kdelta.cpus import list_cpus
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.run import MachineOptions
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.run.request import RunRequest
from tests.cli.captured import without_head
from tests.cli.studies import Captured, Studies, kdelta


def test_compare_prints_the_report_to_stdout_and_the_log_to_stderr(
    studies: Studies, capsys: Captured
) -> None:
    assert kdelta("compare", "deb:linux-image-a", "deb:linux-image-b") == 0
    shown = capsys.readouterr()
    assert without_head(shown.out).startswith(
        "Linux 6.1.0 against itself, 10 operations of syscalls"
    )
    assert re.search(r"\nopen-close +3209 +3031 +-5.55% ", shown.out)
    assert "boot-failed: panic: oops" in shown.out
    assert "  | console 29\n" in shown.out
    assert shown.err.startswith("boot 6.1.0-a: ready (")
    assert studies.asked == [
        CompareRequest(
            base="deb:linux-image-a",
            others=("deb:linux-image-b",),
            lab=msgspec.structs.replace(LabRequest(), jobs=studies.asked[0].lab.jobs),
        )
    ]
    assert studies.asked[0].lab.jobs >= 1


def test_compare_all_prints_every_figure_and_what_it_was_measured_on(
    studies: Studies, capsys: Captured
) -> None:
    pair = ("deb:linux-image-a", "deb:linux-image-b")
    for more, said in (((), "kdelta report --all"), (("--all",), "CPU       QEMU CPU\n")):
        assert kdelta("compare", *pair, *more) == 0
        shown = capsys.readouterr().out
        assert said in shown
        assert kdelta("report") == 0
        assert capsys.readouterr().out == shown
    assert re.search(r"open-close +3209.27  3031.15  -178.12", shown)
    assert studies.asked


def test_a_step_says_how_long_it_took_before(
    studies: Studies, own_cache: Path, capsys: Captured
) -> None:
    (own_cache / "timings.json").write_text('{"boot 6.1.0-a": 37.4}')
    assert kdelta("compare", "deb:linux-image-a", "deb:linux-image-b") == 0
    assert "boot 6.1.0-a ... (about 37 s)\n" in capsys.readouterr().err
    assert studies.asked


def test_every_option_reaches_the_study(studies: Studies) -> None:
    code = kdelta(
        *("compare", "image:a", "image:b", "image:c", "-w", "w", "-o", "x", "-o", "y"),
        *("--perturb", "5", "--rerun", "--no-snapshot", "-j", "7", "--memory", "512"),
        *("--qemu-cpu", "max", "--append", "quiet", "--timeout", "9", "--explain", "0"),
    )
    assert code == 0
    assert studies.asked == [
        CompareRequest(
            base="image:a",
            others=("image:b", "image:c"),
            workload="w",
            operations=("x", "y"),
            lab=LabRequest(
                machine=MachineOptions(
                    memory_mib=512, cpu="max", append="quiet", timeout_seconds=9
                ),
                perturbations=5,
                jobs=7,
                rerun=True,
                snapshots=False,
            ),
        )
    ]


def test_a_cpu_is_named_more_than_once_for_compare(studies: Studies) -> None:
    cpus = ("--cpu", "zen3", "--cpu", "skylake-server", "--cpu", "zen3")
    more = ("--layouts", "16", "--margin", "0.5")
    assert kdelta("compare", "image:a", "image:b", *cpus, *more) == 0
    (request,) = studies.asked
    assert isinstance(request, CompareRequest)
    assert [cpu.name for cpu in request.cpus] == ["zen3", "skylake-server"]
    assert (request.layouts, request.margin) == (16, 0.005)
    assert request.lab.machine == MachineOptions()


def test_both_verdicts_and_what_was_not_as_on_the_cpu(studies: Studies, capsys: Captured) -> None:
    arguments = ("compare", "image:a", "image:b", "--cycles", "zen3", "--all")
    assert kdelta(*arguments) == 0
    shown = capsys.readouterr().out
    flat = " ".join(shown.split())
    assert "zen3 (AMD Zen 3: EPYC 7003); prices of misses are intervals; not mea" in flat
    assert "not measured: l1i, itlb." in flat
    assert "the same code relinked: uname" in flat
    assert "uname 540 540 0 0% exact 0 model cycles: placement only" in flat
    assert "uname l1i misses 5.14 4.45 diff: -0.69" in flat
    # The guest's flags have erms and nothing else.
    assert "strings moved by the byte (ERMS)" not in flat
    assert "(no fsrm)" in flat
    assert kdelta(*arguments, "--json") == 0
    document = read_document(capsys.readouterr().out)
    (machine,) = document.machines
    assert machine.cpu
    assert machine.cpu.name == "zen3"
    other = machine.others[0]
    details = [one.detail for one in other.measured[0].effects if one.detail]
    assert [one.region for one in details if one.relinked] == ["uname"]
    assert {one.kernels == ["base", "other"] for one in other.mismatches} == {True}
    assert len(studies.asked) == 2


def test_a_cpu_sets_the_machine_of_a_run(studies: Studies, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    text = (resources.files("kdelta.cpus") / "zen3.toml").read_text()
    own.write_text(text.replace('name = "zen3"', 'name = "mine"').replace("EPYC-Milan", "EPYC"))
    assert kdelta("run", "image:a", "--cpu", "icelake-server", "--append", "x", "--", "ls") == 0
    assert kdelta("run", "image:a", "--cpu", str(own), "--", "ls") == 0
    assert kdelta("run", "image:a", "--cpu", "generic-x86-64", "--", "ls") == 0
    named, mine, generic = (request.lab.machine for request in studies.asked)
    qemu = list_cpus()["icelake-server"].qemu
    assert (named.cpu, named.append) == (qemu.cpu, f"{qemu.append} x".strip())
    assert named.force == qemu.force != ()
    assert named.cpu
    assert mine.cpu.startswith("EPYC,")
    assert generic == MachineOptions()


def test_compare_as_json(studies: Studies, capsys: Captured) -> None:
    assert kdelta("compare", "deb:linux-image-a", "deb:linux-image-b", "--json") == 0
    document = read_document(capsys.readouterr().out)
    (machine,) = document.machines
    statuses = [one.run.status for one in machine.others[0].side.runs]
    assert statuses == ["ok"] * 3 + ["boot-failed"]
    assert studies.asked


def test_run_takes_a_command_with_options_of_its_own(studies: Studies, capsys: Captured) -> None:
    code = kdelta(
        "run", "image:a", "--file", "/etc/hosts", "--seconds", "5", "--", "ls", "-l", "-j"
    )
    assert code == 0
    request = studies.asked[0]
    assert isinstance(request, RunRequest)
    assert request.kernel == "image:a"
    assert request.program == Program(("ls", "-l", "-j"), ("/etc/hosts",), 5)
    assert request.lab.perturbations == 1
    shown = capsys.readouterr()
    assert "standard output\n\n  hello\n" in shown.out
    assert shown.err == "a line\n"


def test_run_as_json(studies: Studies, capsys: Captured) -> None:
    assert kdelta("run", "image:a", "--json", "--", "true") == 0
    document = read_document(capsys.readouterr().out)
    assert document.stdout == "hello\n"
    assert studies.asked
