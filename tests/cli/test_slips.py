# SPDX-License-Identifier: GPL-2.0-or-later
"""A new user's slips: each message names the word, what is wrong, and a command that then works."""

import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from kdelta.cli.slips import parses
from tests.cli.captured import stored
from tests.cli.studies import Captured, kdelta
from tests.kernels.samples import elf_header
from tests.report.example import base_counts

A, B = "deb:linux-image-6.1-amd64", "deb:linux-image-6.12-amd64"
AB = f"{A} {B}"
SOURCES = "https://kernel.example"


class Slip(NamedTuple):
    """What was typed; the word that is named; what is wrong with it; a command that then works."""

    typed: str
    word: str
    wrong: str
    works: str


NO_OPTION, NO_COMMAND, NUMBER = "there is no option", "there is no such command", "without a unit"

SLIPS = [
    # Commands.
    Slip(f"comprae {AB}", "comprae", NO_COMMAND, f"compare {AB}"),
    Slip("repotr --list", "repotr", NO_COMMAND, "report --list"),
    Slip(f"{A} compare {B}", A, NO_COMMAND, f"compare {AB}"),
    Slip("list", "list", NO_COMMAND, "--help"),
    Slip("help compare", "help", "--help is an option", "compare --help"),
    Slip("help", "help", "--help is an option", "--help"),
    Slip("compare", "BASE", "is missing", "compare --help"),
    Slip("rm", "ID...", "is missing", "rm --help"),
    Slip("diff", "A", "is missing", "diff --help"),
    Slip("bisect", "GOOD..BAD", "is missing", "bisect --help"),
    Slip(f"run {A}", "no command", "after --", f"run {A} -- COMMAND ARGS"),
    Slip("ablate ./linux", "--from", "is missing", "ablate --help"),
    Slip(f"place {A}", "--output", "is missing", "place --help"),
    Slip("runs 5", "5", "takes no argument", "runs"),
    Slip("workloads syscalls", "syscalls", "takes no argument", "workloads"),
    Slip("doctor now", "now", "takes no argument", "doctor"),
    # Options.
    Slip(
        f"compare {AB} --operaton getppid", "--operaton", NO_OPTION,
        f"compare {AB} --operation getppid",
    ),
    Slip(f"compare {AB} --pertub 3", "--pertub", NO_OPTION, f"compare {AB} --perturb 3"),
    Slip("report --lst", "--lst", NO_OPTION, "report --list"),
    Slip(f"compare {AB} --op getppid", "--op", NO_OPTION, f"compare {AB} --operation getppid"),
    Slip(f"compare {AB} --again", "--again", "it is called --rerun now", f"compare {AB} --rerun"),
    Slip("report -o x.html", "-o", "it is called --output now", "report --output x.html"),
    Slip("report -o x.pdf", "-o", "it is called --output now", "report --output x.html"),
    Slip(f"place {A} -o x", "-o", "--output now", f"place {A} --output x"),
    Slip(AB, A, "are compared by kdelta compare", f"compare {AB}"),
    Slip("calibrate", "calibrate", "it was removed", "cpus host"),
    Slip("bisect --good v6.1 --bad v6.2", "--good", NO_OPTION, "bisect v6.1..v6.2"),
    Slip("bisect --bad=v6.2 --good=v6.1 -C x", "--bad", NO_OPTION, "bisect v6.1..v6.2 -C x"),
    Slip(f"compare --base {A} --other {B}", "--base", NO_OPTION, f"compare {AB}"),
    Slip(f"compare {AB} --base", "--base", NO_OPTION, f"compare {AB}"),
    Slip(f"gate {AB} --threshold 5", "--threshold", NO_OPTION, "gate --help"),
    Slip(
        f"compare {AB} --html", "--html", "requires an argument",
        f"compare {AB} --html report.html",
    ),
    Slip("--hlp", "--hlp", NO_OPTION, "--help"),
    Slip(f"compare {AB} --from x", "--from", "is an option of ablate", "compare --help"),
    Slip(f"gate {AB} --functions 3", "--functions", "is an option of compare", "gate --help"),
    Slip(f"compare {AB} -w", "-w", "requires an argument", f"compare {AB} -w syscalls"),
    Slip(f"compare {AB} -o", "-o", "requires an argument", "compare --help"),
    Slip(f"compare {AB} --json=yes", "--json", "does not take a value", "compare --help"),
    # Values.
    Slip(f"compare {AB} --perturb three", "three", NUMBER, f"compare {AB} --perturb 4"),
    Slip(f"compare {AB} --perturb 0", "--perturb 0", "at least 1", f"compare {AB} --perturb 1"),
    Slip(f"compare {AB} --perturb=5000", "5000", "at most 1000", f"compare {AB} --perturb=1000"),
    Slip(f"compare {AB} --memory 2G", "2G", NUMBER, f"compare {AB} --memory 2048"),
    Slip(f"compare {AB} --memory 10", "10", "at least 64", f"compare {AB} --memory 64"),
    Slip(f"compare {AB} --timeout 10m", "10m", NUMBER, f"compare {AB} --timeout 600"),
    Slip(f"compare {AB} --margin 1%", "1%", NUMBER, f"compare {AB} --margin 1"),
    Slip(f"compare {AB} --margin=-1", "-1 %", "must be positive", "compare --help"),
    Slip(f"compare {AB} --margin much", "much", NUMBER, f"compare {AB} --margin 1"),
    Slip(f"layout {A} --trace-limit 0", "0", "at least 0.01", f"layout {A} --trace-limit 0.01"),
    Slip(f"layout {A} --trace-limit x", "x", NUMBER, f"layout {A} --trace-limit 0.25"),
    Slip(f"compare {AB} --layouts 1", "--layouts 1", "at least 2", f"compare {AB} --layouts 2"),
    Slip(f"compare {AB} -j two", "two", NUMBER, "compare --help"),
    Slip(f"run {A} --seconds 5s -- ls", "5s", NUMBER, f"run {A} --seconds 5 -- ls"),
    Slip("runs -n 0", "0", "at least 1", "runs -n 1"),
    Slip("show --functions many", "many", NUMBER, "show --functions 20"),
    Slip(f"compare {AB} --as root", "--as root", "no such word", f"compare {AB} --as service"),
    Slip(f"compare {AB} --mode kernal", "kernal", "no such word", f"compare {AB} --mode kernel"),
    Slip(f"gate {AB} --mixed pas", "--mixed pas", "no such word", f"gate {AB} --mixed pass"),
    Slip(f"compare {AB} --cpu zen", "'zen'", "no CPU", f"compare {AB} --cpu zen5"),
    Slip(f"compare {AB} --cpu nehalem", "'nehalem'", "no CPU", "compare --help"),
    Slip(f"compare {AB} -w aes:foo=1", "aes:foo=1", "no parameters", f"compare {AB} -w aes"),
    Slip(f"compare {AB} -o open", "'open'", "no operation", f"compare {AB} -o open-close"),
    Slip(f"compare {AB} -o get-ppid", "get-ppid", "no operation", f"compare {AB} -o getppid"),
    Slip(f"compare {AB} --budget 5min", "5min", "is no time", "compare --help"),
    Slip(
        "profile --export speedscope -o x.json", "-o x.json", "is an operation, not a file",
        "profile --export speedscope --output x.json",
    ),
    Slip("profile --export htm", "htm", "no export format", "profile --help"),
    Slip("profile --export speedscop", "speedscop", "no ex", "profile --export speedscope"),
    Slip("report --format pdf", "pdf", "no such format", "report --format text"),
    Slip("report --format htm", "htm", "no such format", "report --format html"),
    # Files.
    Slip(
        f"compare {AB} --html folder", "folder", "is a folder",
        f"compare {AB} --html folder/report.html",
    ),
    Slip(f"compare {AB} --html no/x.html", "no", "there is no folder", "compare --help"),
    Slip("report --output x.pdf", "x.pdf", "no format ends with .pdf", "report --output x.html"),
    Slip("report --output no/x.html", "no/x.html", "there is no folder", "report --help"),
    Slip("build image:nowhere", "nowhere", "no such file", "build --help"),
    Slip("build image:folder", "folder", "it has no kernel image", "build --help"),
    Slip("build image:notes.txt", "notes.txt", "it is not a kernel", "build --help"),
    Slip(f"compare {AB} --cpu ./no.toml", "no.toml", "cannot be read", "cpus"),
    # Kernel specs.
    Slip(f"compare {A}", A, "nothing to compare with", "compare ~/linux +fix.patch"),
    Slip(f"compare {A} db:linux-image-6.12-amd64", "'db'", "unknown scheme", f"compare {AB}"),
    Slip(
        f"compare {A} linux-image-6.12-amd64", "linux-image-6.12-amd64", "not a kernel spec",
        f"compare {AB}",
    ),
    Slip("build vmlinuz-6.1", "vmlinuz-6.1", "not a kernel spec", "build image:vmlinuz-6.1"),
    Slip(
        "ablate linux --from a --to b", "'linux'", "not a kernel spec",
        "ablate ./linux --from a --to b",
    ),
    Slip(
        "compare ./linux CONFIG_A=y", "CONFIG_A=y", "not a kernel spec",
        "compare ./linux +CONFIG_A=y",
    ),
    Slip(f"compare +fix.patch {A}", "+fix.patch", "change without a kernel", "compare --help"),
    Slip(f"compare {A} +fix.patch", "+fix.patch", "built already", "compare --help"),
    Slip(f"compare {A} deb:", "''", "not a package name", "compare --help"),
    Slip(f"gate {A}", A, "1 kernels, not two", "gate BASE OTHER"),
    Slip("bisect ./linux v6.1..v6.2", "v6.1..v6.2", "comes first", "bisect v6.1..v6.2 ./linux"),
    Slip("bisect v6.1", "'v6.1'", "no range of commits", "bisect v6.1..HEAD"),
    Slip("bisect v6.1...v6.2", "v6.1...v6.2", "no range of commits", "bisect --help"),
    Slip(
        "compare linux-6.1 linux-6.12", "linux-6.1", "not a kernel spec",
        "compare ./linux-6.1 ./linux-6.12",
    ),
    Slip("compare folder ./linux", "folder", "not a kernel spec", "compare ./folder ./linux"),
    Slip(f"compare {A} vs {B}", "'vs'", "not a kernel spec", "compare --help"),
    Slip(f"compare {A} ''", "''", "not a kernel spec", "compare --help"),
    Slip(
        f"compare {A} {SOURCES}/linux-6.1.tar.xz", "linux-6.1.tar.xz", f"curl -LO {SOURCES}/linux",
        f"compare {A} ./linux-6.1.tar.xz",
    ),
    Slip(
        f"compare {A} {SOURCES}/linux.git", "linux.git", f"git clone {SOURCES}/linux.git linux",
        f"compare {A} git:linux@HEAD",
    ),
    Slip(
        f"compare {A} git:{SOURCES}/linux.git@v6.1", "linux.git@v6.1", f"clone {SOURCES}/linux.git",
        f"compare {A} git:linux@v6.1",
    ),
    Slip(
        "compare git@example.org:k/linux.git ./linux", "k/linux.git", "git clone",
        "compare git:linux@HEAD ./linux",
    ),
    Slip(
        f"compare {A} linux-image-6.1_6.1.9_amd64.deb", "6.1.9_amd64.deb", "dpkg-deb -x linux-",
        f"compare {A} image:./linux-image-6.1_6.1.9_amd64",
    ),
    Slip(
        "compare ./linux fix.patch", "fix.patch", "is a change", "compare ./linux +fix.patch"
    ),
    Slip("compare config.gz ./linux", "config.gz", "is a change", "compare --help"),
    Slip(
        "compare vmlinux ./linux", "vmlinux", "not a kernel spec",
        "compare image:vmlinux ./linux",
    ),
    Slip("compare ./patches ./linux", "patches", "write +", "compare --help"),
    Slip("compare ./notes.txt ./linux", "notes.txt", "neither a folder nor", "compare --help"),
    Slip("compare ./folder ./folder", "folder", "is no kernel tree", "compare --help"),
    Slip("compare ./foldr ./linux", "foldr", "did you mean", "compare ./folder ./linux"),
    Slip("compare ./nowhere ./linux", "nowhere", "there is no", "compare --help"),
    Slip(
        f"compare {A} +mitigations=off", "+mitigations=off", "not a change",
        f"compare {A} +cmdline:mitigations=off",
    ),
    Slip(f"compare {A} +CONFIG_HZ=1000", "+CONFIG_HZ=1000", "built already", "compare --help"),
    Slip(f"gate {A} {B} {A}", A, "3 kernels, not two", "gate BASE OTHER"),
    Slip(f"ablate {A} --from a --to b", A, "not a source tree", "ablate --help"),
    Slip("diff last", "last", "1 runs, not two", "diff --help"),
    # Programs.
    Slip(f"compare {AB} -- ./nosuch", "./nosuch", "no such program", "compare --help"),
    Slip(f"run {A} -- nosuch", "nosuch", "on this host's PATH", "run --help"),
    Slip(f"run {A} -- file.c", "file.c", "on this host's PATH", f"run {A} -- ./file.c"),
    Slip(f"run {A} -- ./file.c", "file.c", "gcc -O2 ./file.c", f"run {A} -- ./file"),
    Slip("run ls", "no command", "kernel first", "run KERNEL -- ls"),
    Slip(f"run {A} ls /usr", "no command", "after --", f"run {A} -- ls /usr"),
    Slip(f"run {A} ls -l /usr", "-l", "stands after --", f"run {A} -- ls -l /usr"),
    Slip(f"run {A} nosuch --lines", "--lines", NO_OPTION, "run --help"),
    Slip(f"compare {AB} -- ./folder", "./folder", "it is a folder", "compare --help"),
    Slip(f"compare {AB} -- ./notes.txt", "notes.txt", "not executable", "compare --help"),
    Slip(
        f"gate {AB} -- ./no-line", "no-line", "script with a #! line",
        f"gate {AB} -- sh ./no-line",
    ),
    Slip(f"run {A} -- ./lost", "lost", "/nonexistent", f"run {A} -- sh ./lost"),
    Slip(f"run {A} -- ./dos", "dos", "carriage return", "run --help"),
    Slip(f"run {A} -- ./nothing", "nothing", "is empty", "run --help"),
    Slip(f"diff {AB} -- ./cut", "cut", "damaged ELF file", "diff --help"),
    Slip(f"run {A} -- ./foreign", "foreign", "(S390, 64 bit)", "run --help"),
    Slip(f"layout {A} -- ./foreign", "foreign", "another machine", "layout --help"),
    Slip(f"shell {A} -- ./lost", "lost", "/nonexistent", f"shell {A} -- sh ./lost"),
    Slip(f"run {A} --against ./lost -- ls", "old program", "/nonexistent", "run --help"),
    Slip(f"run {A} --file ./large -- ls", "large", "a guest takes 512 MiB", "run --help"),
    # Names of what is stored and of what there is.
    Slip("show 99999999", "'99999999'", "no study and no run", "report --list"),
    Slip("log nat", "nat", "is a workload", "log -w nat"),
    Slip("kernels 6.12", "6.12", "no built kernel", "kernels"),
    Slip("show zzz", "'zzz'", "no study and no run", "report --list"),
    Slip("rm zzz", "'zzz'", "no study and no run", "runs"),
    Slip("rm last", "last", "another study or run each time", "report --list"),
    Slip("kernels nonesuch", "nonesuch", "no built kernel", "kernels"),
    Slip("schema kdelta.compar/3", "kdelta.compar/3", "no such document", "schema"),
    Slip("log nothing-like-that", "nothing-like-that", "no kernel in the store", "runs"),
]  # fmt: skip


PROGRAMS = {
    "no-line": b"echo hello\n",
    "lost": b"#!/nonexistent\n",
    "dos": b"#!/bin/sh\r\necho\r\n",
    "nothing": b"",
    "cut": b"\x7fELF\x02\x01",
    "foreign": elf_header(22),
}


@pytest.fixture
def here(tmp_path: Path, own_data: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert own_cache.is_dir()
    stored(own_data, base_counts(0))
    folder = tmp_path / "here"
    for name in ("folder", "linux", "linux-6.1", "linux-6.12", "patches"):
        (folder / name).mkdir(parents=True)
    (folder / "patches" / "0001-first.patch").write_text("")
    (folder / "file.c").write_text("")
    (folder / "notes.txt").write_text("no kernel\n")
    for name, content in PROGRAMS.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o755)
    with (folder / "large").open("wb") as file:
        file.truncate(600 << 20)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.typed)
def test_a_slip_names_the_word_the_fault_and_a_command_that_works(
    slip: Slip, here: Path, capsys: Captured
) -> None:
    before = sorted(here.iterdir())
    code = kdelta(*shlex.split(slip.typed))
    shown = capsys.readouterr()
    answers = slip.typed.startswith(("gate", "shell")) or "--against" in slip.typed
    assert code == (255 if answers else 2)
    assert shown.out == ""
    message, *more = shown.err.splitlines()
    assert message.startswith("kdelta: ")
    assert slip.word in message
    assert slip.wrong in shown.err
    assert f"kdelta {slip.works}" in " ".join(more)
    assert parses(shlex.split(slip.works))
    assert len(more) <= 2
    assert "Traceback" not in shown.err
    assert sorted(here.iterdir()) == before


def test_there_are_at_least_120_slips() -> None:
    assert len({slip.typed for slip in SLIPS}) >= 120


def test_no_wrong_command_line_parses() -> None:
    """What a test calls a command that works is refused where it does not."""
    for line in ("comprae a b", "compare", "compare a b --frobnicate", "runs -n 0", ""):
        assert not parses(shlex.split(line))


@pytest.mark.parametrize(
    ("typed", "wrong", "works"),
    [
        (f"compare {AB} -w syscall", "no workload is called 'syscall'", "-w syscalls"),
        (f"compare {AB} -o getpid", "no operation of syscalls is called 'getpid'", "-o getppid"),
    ],
)
def test_a_workload_or_operation_is_checked_before_any_kernel(
    typed: str, wrong: str, works: str, here: Path, capsys: Captured
) -> None:
    assert here.is_dir()
    assert kdelta(*shlex.split(typed)) == 2
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == f"kdelta: {wrong}"
    assert shown[-1] == f"try: kdelta compare {AB} {works}"
