# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of the host that fail in a guest: what is reported of why, and what shows more."""

from pathlib import Path

import pytest

from kdelta.guests.job import Job
from kdelta.kernels.model import Kernel
from kdelta.lab.failed_program import WAITING, about_program, lacked
from kdelta.lab.plan import COMMAND_REGION, work_of
from kdelta.machines.outcome import GuestOutcome
from kdelta.spec.run import RunStatus
from tests.cli.studies import Captured, kdelta
from tests.machines.bench import NEW, OLD

KERNEL = Kernel(
    spec="deb:linux-image-a=1",
    release="6.1",
    identity="a" * 64,
    image="/no/image",
    image_format="bzImage",
    arch="x86_64",
    config=None,
    modules=None,
)


def about(
    status: RunStatus, stderr: str = "", *, detail: str = "exit 1", console: str = "",
    region: str | None = COMMAND_REGION,
) -> str:  # fmt: skip
    outcome = GuestOutcome(status, detail, console, 1.0, {"stderr": stderr.encode()})
    job = Job(("/usr/bin/it", "a b"), region=region, seconds=7)
    return about_program(outcome, KERNEL, work_of("run it", job, {}))


SEE = "; see: kdelta shell deb:linux-image-a=1 -- /usr/bin/it 'a b'"
FAILED = RunStatus.WORKLOAD_FAILED
TERMINAL = "; a run has no terminal, and kdelta shell has one"
NETWORK = "; a guest has no network but lo, and no services but those that the command starts"
SILENT = (
    "; it printed no error; it has no terminal, and its standard input is empty; if it is to end "
    """so: -- sh -c '/usr/bin/it '"'"'a b'"'"' || true'"""
)


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("", SILENT),
        ("\nit: no\n\nb\n", "; it printed: it: no / b"),
        ("% Total\n--\nit: no\n", "; it printed: % Total / ... / it: no"),
        ("top: failed tty get\n", f"; it printed: top: failed tty get{TERMINAL}"),
        ("it: Inappropriate ioctl for device", TERMINAL),
        ("TERM environment variable not set.", TERMINAL),
        ("Vim: Warning: Output is not to a terminal", TERMINAL),
        ("curl: (6) Could not resolve host: a.b", NETWORK),
        ("ping: a.b: Temporary failure in name resolution", NETWORK),
        ("E: Temporary failure resolving 'a.b'", NETWORK),
        ("wget: unable to resolve host address", NETWORK),
        ("connect: Network is unreachable", NETWORK),
        ("Failed to connect to 127.0.0.1 port 99", NETWORK),
        ("ab: Connection refused (111)", NETWORK),
        ("it: /etc/attyre: no such file", "; it printed: it: /etc/attyre: no such file"),
    ],
)
def test_a_failed_program_is_reported_with_what_it_printed(stderr: str, said: str) -> None:
    found = about(FAILED, stderr)
    assert found.endswith(f"{said}{SEE}")
    for cause in (TERMINAL, NETWORK):
        assert (cause in found) == (cause in said)


def test_time_and_memory_name_their_options() -> None:
    found = about(RunStatus.TIMED_OUT)
    assert found == f"; --seconds allows it more than 7 s of the guest's time; {WAITING}{SEE}"
    console = "Out of memory: Killed process 60 (it)"
    for found in (
        about(FAILED, console=console, detail="signal 9 SIGKILL"),
        about(FAILED, detail="bad-job it: No space left on device"),
    ):
        assert found == f"; the guest has too little memory: --memory MIB gives it more{SEE}"


def test_more_output_than_a_guest_has_room_for_is_no_lack_of_memory() -> None:
    detail = "exit 1, with more output than a guest has room for"
    found = about(FAILED, "it: No space left on device", detail=detail)
    assert """; without its output: -- sh -c 'exec /usr/bin/it '"'"'a b'"'"' >/dev/null'""" in found
    assert "--memory" not in found


def test_workloads_and_runs_that_went_well_are_not_explained() -> None:
    assert about(FAILED, "not a tty", region=None) == ""
    assert about(RunStatus.OK, "not a tty") == ""
    assert about(RunStatus.BOOT_FAILED) == ""


def test_a_program_that_went_well_and_lacked_the_network_is_warned_of() -> None:
    line = "W: Failed to fetch a  Temporary failure resolving 'a.b'"
    (warning,) = lacked(f"Reading\n{line}\nW: ignored\n")
    assert warning == f'the program printed "{line}": {NETWORK.removeprefix("; ")}'
    assert lacked("Reading\n") == ()


def script(folder: Path, text: str) -> str:
    path = folder / "script"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.guest
@pytest.mark.slow
def test_a_program_that_fails_in_a_guest_says_why_and_what_to_do(
    tmp_path: Path, capsys: Captured
) -> None:
    path = script(tmp_path, "echo 'it: not a tty' >&2; exit 9")
    assert kdelta("run", OLD, "--", path, "a b") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"workload-failed: exit 9; it printed: it: not a tty{TERMINAL}; see: kdelta" in shown
    assert f"-- {path} 'a b'" in shown


@pytest.mark.slow
@pytest.mark.guest
def test_a_program_that_fails_on_one_of_two_kernels_names_that_kernel(
    tmp_path: Path, capsys: Captured
) -> None:
    path = script(
        tmp_path, "read -r line </proc/version; case $line in *' 6.12'*) kill -SEGV $$;; esac"
    )
    assert kdelta("compare", OLD, NEW, "--perturb", "1", "--skip-states", "--", path) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "6.12" in shown
    assert "signal 11 SIGSEGV; see: kdelta shell 'deb:linux-image-6.12" in shown


@pytest.mark.guest
@pytest.mark.slow
def test_a_program_whose_output_is_cut_has_no_figures(tmp_path: Path, capsys: Captured) -> None:
    path = script(tmp_path, "head -c 20000000 /dev/zero 2>/dev/null; exit 0")
    assert kdelta("run", OLD, "--", path) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "workload-failed: exit 0, with more output than a guest has room for" in shown
    assert kdelta("run", OLD, "--", "sh", "-c", f"exec {path} >/dev/null") == 0


@pytest.mark.guest
@pytest.mark.slow
def test_a_program_that_does_not_end_names_the_option(capsys: Captured) -> None:
    assert kdelta("run", OLD, "--no-find", "--seconds", "5", "--", "sleep", "60") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"--seconds allows it more than 5 s of the guest's time; {WAITING}; see" in shown
