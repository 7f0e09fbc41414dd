# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs timed by a machine's own clock: here, over SSH, or from a bundle that was run there.

All three run the same bundle by the same run.sh, and read the same RESULTS. What is refused of
this host before it begins: too few cores, no ld.lld, no steady clock, too much else to do.
"""

import datetime
import os
import re
import shlex
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdelta.host.command import Log, echo_command, environment, find_program, quiet
from kdelta.host.files import lab_errors, remove
from kdelta.host.machine import cores
from kdelta.host.stream import run_logged
from kdelta.host.target import host_target
from kdelta.measures.clock.bundle import Manifest, ManifestProgram, read_manifest
from kdelta.measures.clock.model import MachineFacts, ProgramFacts, TimedProgram, Timings
from kdelta.measures.clock.results import (
    Process,
    Said,
    level_of,
    links_of,
    quiet_of,
    read_text,
    refuse_busy,
)
from kdelta.spec.errors import LabError, UserError

RESULTS = "RESULTS"
LEAST_CORES = 2
BUSY_SHARE = 0.2
"""Others may have all cores but two for themselves, and so much of these two, before it begins."""
_CPU_NUMBERS = (
    ("cpu family", "model", "stepping"),
    ("CPU implementer", "CPU part", "CPU variant"),
    ("mvendorid", "marchid", "mimpid"),
)
_SSH = ("ssh", "-o", "BatchMode=yes", "-C")
_REMOTE = (
    "d=$(mktemp -d) || exit 9; trap 'rm -rf \"$d\"' EXIT; trap 'exit 130' INT HUP TERM; "
    'cd "$d" && tar xf - && sh run.sh >&2 </dev/null && cat RESULTS'
)


def run_here(folder: Path, *, busy_ok: bool = False, log: Log = quiet) -> Timings:
    """Runs a bundle on this host. UserError when it is too busy, has no clock or too few cores, or
    is of another architecture than the bundle; LabError when run.sh fails.
    """
    manifest = manifest_of(folder)
    here = host_target()
    if here is None or here.name != manifest.arch:
        raise UserError(
            f"the bundle is for {manifest.arch}, and this host is {os.uname().machine}",
            "copy it to a machine of that kind, and run its run.sh there",
        )
    check_host(busy_ok=busy_ok)
    log_file = folder / "log"
    failed = run_logged(["sh", "run.sh"], log_file, cwd=folder, env={"CORE": ""}, line=log)
    if failed or not (folder / RESULTS).is_file():
        raise LabError(f"run.sh ended with {failed}", f"what it said is in {log_file}")
    return read_results(folder / RESULTS, busy_ok=busy_ok)


def check_host(*, busy_ok: bool = False, proc: Path = Path("/proc"), seconds: float = 1.0) -> None:
    """UserError for a host on which no times can be taken: fewer than two cores, an x86 whose
    time-stamp counter is not there or not steady, or, unless `busy_ok`, one that is busy now.
    """
    if cores() < LEAST_CORES:
        raise UserError(
            "only one core may be used here: what is timed needs one for itself",
            "use a machine, or a cpuset, with two or more",
        )
    check_clock((proc / "cpuinfo").read_text())
    if busy_ok:
        return
    before = _busy_seconds((proc / "stat").read_text())
    begin = time.monotonic()
    time.sleep(seconds)
    busy = _busy_seconds((proc / "stat").read_text()) - before
    share = busy / max(time.monotonic() - begin, 1e-9)
    if share > cores() - 2 + BUSY_SHARE:
        load = (proc / "loadavg").read_text().split()[0]
        raise UserError(
            f"this host is busy: {share:.1f} of its {cores()} cores, load average {load}",
            "stop what else runs, or go on with --busy-ok and wider intervals",
        )


def check_clock(cpuinfo: str) -> None:
    """UserError for an x86 whose cpuinfo says that its counter is not there or not steady. Others
    have theirs by their architecture.
    """
    if (found := re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)) is None:
        return
    flags = found[1].split()
    for flag, what in (
        ("tsc", "has no time-stamp counter"),
        ("constant_tsc", "has a time-stamp counter that changes with the frequency"),
    ):
        if flag not in flags:
            raise UserError(
                f"this CPU {what}, as /proc/cpuinfo has it (no {flag})",
                "a virtual machine's hypervisor may hide it: give it the host's CPU model",
            )


def _busy_seconds(stat: str) -> float:
    """Of all cores, without what waits for I/O."""
    jiffies = [int(word) for word in stat.split("\n", 1)[0].split()[1:9]]
    return (sum(jiffies) - jiffies[3] - jiffies[4]) / 100


def manifest_of(folder: Path) -> Manifest:
    """What a bundle's folder has; LabError when it is none."""
    path = folder / "manifest.json"
    with lab_errors("reading", path):
        return read_manifest(path.read_bytes(), str(path))


def read_results(path: Path, *, busy_ok: bool = False) -> Timings:
    """What run.sh wrote. UserError when it is not whole, or, unless `busy_ok`, was measured on a
    machine that had too much else to do.
    """
    with lab_errors("reading", path):
        content = path.read_bytes()
        when = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    timings = timings_of(read_text(content, str(path)), when)
    if not busy_ok:
        refuse_busy(timings.quiet)
    return timings


def timings_of(said: Said, when: datetime.datetime) -> Timings:
    """The figures of a RESULTS file."""
    of_link: dict[tuple[str, int], list[Process]] = {}
    for process in said.processes:
        of_link.setdefault((process.program, process.seed), []).append(process)
    level = level_of(said)
    return Timings(
        when=when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=facts_of(said),
        quiet=quiet_of(said),
        programs=tuple(_program(one, of_link, level) for one in said.manifest.programs),
        bundle=said.manifest.id,
    )


def _program(
    known: ManifestProgram, of_link: Mapping[tuple[str, int], Sequence[Process]], level: float
) -> TimedProgram:
    processes = []
    for seed in range(1, len(known.sha256) + 1):
        if (known.name, seed) not in of_link:
            raise UserError(f"the results lack {known.name}, seed {seed}", "run run.sh again")
        processes.append(of_link[known.name, seed])
    return TimedProgram(
        **{name: getattr(known, name) for name in ProgramFacts.__struct_fields__},
        links=links_of(known.name, known.sha256, processes, level),
    )


def facts_of(said: Said) -> MachineFacts:
    """What was timed on, as far as its files say."""
    core = int(said.facts["core"])
    blocks = [
        dict(re.findall(r"^(\S[^\t:]*?)\s*:\s*(.*)$", block, re.MULTILINE))
        for block in said.cpuinfo.split("\n\n")
    ]
    own = next((block for block in blocks if block.get("processor") == str(core)), blocks[0])
    numbers = next((names for names in _CPU_NUMBERS if names[0] in own), ())
    name = own.get("model name") or said.model or own.get("uarch") or "unknown"
    return MachineFacts(
        id=said.facts["machine"],
        arch=said.manifest.arch,
        cpu=" ".join(name.split()),
        cpu_numbers=" ".join(own.get(one, "?") for one in numbers),
        cores=len(said.processors[0].busy),
        core=core,
        hypervisor=said.facts["hypervisor"] == "1",
        kernel=said.kernel,
        clock=said.facts["clock"].split()[0],
        page_bytes=int(said.facts["page"]),
    )


def over_ssh(host: str, folder: Path, *, busy_ok: bool = False, log: Log = quiet) -> Timings:
    """Runs a bundle on another machine that `ssh HOST` reaches without asking, which needs tar and
    a shell, and puts its RESULTS into `folder`. Nothing stays there. UserError when it cannot be
    reached or its shell fails, with what ssh said.
    """
    manifest_of(folder)
    argv = [find_program(_SSH[0]), *_SSH[1:], "--", host, _REMOTE]
    echo_command(argv)
    log(f"timing on {host}")
    with tempfile.TemporaryFile() as archive, tempfile.TemporaryFile() as errors:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path in sorted(folder.iterdir()):
                if path.name not in (RESULTS, "log", "work", "level"):
                    tar.add(path, path.name)
        archive.seek(0)
        done = subprocess.run(
            argv,
            stdin=archive,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(None),
            check=False,
        )
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace").strip().splitlines()
    if done.returncode:
        raise UserError(
            f"{host}: {said[-1] if said else f'ssh ended with {done.returncode}'}",
            f"try it by hand: ssh {shlex.quote(host)} true",
        )
    results = folder / RESULTS
    remove(results)
    with lab_errors("writing", results):
        results.write_bytes(done.stdout)
    return read_results(results, busy_ok=busy_ok)
