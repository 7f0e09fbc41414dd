# SPDX-License-Identifier: GPL-2.0-or-later
"""Any program of the host under a kernel, exactly."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from kdelta.counts.model import merged_regions
from kdelta.guests.job import Job, JobFile
from kdelta.host.native import native_folder
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.run.assemble import done_report
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command
from tests.machines.bench import OLD, counts_of, guest_program, run_job, syscalls_job

pytestmark = pytest.mark.guest

MARKED = """
#include "kdelta.h"
#include <arpa/inet.h>
#include <unistd.h>
int main(void)
{
    kdelta_begin("mine");
    for (int i = 0; i < 10; i++) {
        getppid();
        kdelta_iter();
    }
    kdelta_end();
    struct sockaddr_in closed = {AF_INET, htons(7), {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    kdelta_begin("first connection");
    connect(fd, (void *)&closed, sizeof closed);
    kdelta_end();
}
"""


def _run(folder: Path, *command: str, files: tuple[str, ...] = ()) -> RunResult:
    request = RunRequest(
        kernel=OLD, program=Program(command, files), lab=LabRequest(perturbations=1)
    )
    with Store.open(folder / "store") as store:
        (done,) = asyncio.run(run_command(request, Lab(store, Silent())))
    assert done.counts, done.run.detail
    return done


@pytest.mark.slow
def test_a_dynamic_program_is_one_region_and_equals_the_clock(tmp_path: Path) -> None:
    done = _run(tmp_path, "ls", "-l", "/")
    assert done.counts
    (region,) = done.counts.regions
    assert region.iteration_count == 1
    assert region.idle_ticks() == 0
    origins = {f.origin for f in region.functions if f.context == "own"}
    assert {"kernel", "ls", "libc.so.6"} <= origins
    assert region.cost("own", kernel=False).insns > 10_000


@pytest.mark.slow
def test_a_program_that_sleeps_idles(tmp_path: Path) -> None:
    done = _run(tmp_path, "sleep", "1")
    assert done.counts
    (region,) = done.counts.regions
    idle = region.idle_ticks()
    assert idle is not None
    assert 990_000_000 < idle < 1_000_000_000


def test_a_program_marks_its_own_regions(tmp_path: Path) -> None:
    source, program = tmp_path / "marked.c", tmp_path / "marked"
    source.write_text(MARKED)
    include = native_folder() / "include"
    subprocess.run(["gcc", "-O2", f"-I{include}", "-o", program, source], check=True)
    done = _run(tmp_path, str(program))
    assert done.counts
    region, connection = done.counts.regions
    assert region.name == "mine"
    assert len(region.iterations) == 10
    assert region.cost("own").specials["syscall"] == 10
    # The kernel fills a table for it, once a boot, by some 6 million instructions.
    assert 10_000 < connection.cost("own").insns < 100_000


@pytest.mark.slow
def test_region_of_kdeltas_own_name_is_refused(tmp_path: Path) -> None:
    source, program = tmp_path / "marked.c", tmp_path / "marked"
    # With a name that no compiler knows.
    source.write_text(
        MARKED.replace("main(void)", "main(int n, char **words)").replace('"mine"', "words[n - 1]")
    )
    include = native_folder() / "include"
    subprocess.run(["gcc", "-O2", f"-I{include}", "-o", program, source], check=True)
    request = RunRequest(
        kernel=OLD, program=Program((str(program), "command")), lab=LabRequest(perturbations=1)
    )
    with Store.open(tmp_path / "store") as store:
        (done,) = asyncio.run(run_command(request, Lab(store, Silent())))
    assert (done.counts, done.run.status) == (None, RunStatus.WORKLOAD_FAILED)
    assert "marks a region 'command', which is kdelta's own" in done.run.detail


@pytest.mark.slow
def test_files_are_carried_along(tmp_path: Path) -> None:
    carried = tmp_path / "carried.txt"
    carried.write_text("kdelta\n")
    done = _run(tmp_path, "cat", "/data/here", files=(f"{carried}:/data/here",))
    with Store.open(tmp_path / "store") as store:
        assert store.get(done.run.attachments["stdout"]) == b"kdelta\n"


@pytest.mark.slow
def test_a_program_that_goes_well_without_the_network_it_wants_is_warned_of(tmp_path: Path) -> None:
    done = _run(tmp_path, "sh", "-c", "echo 'W: Temporary failure resolving it' >&2")
    with Store.open(tmp_path / "store") as store:
        (warning,) = done_report(done, store).warnings
    assert "a guest has no network" in warning


@pytest.mark.slow
def test_how_a_program_reaches_the_guest_moves_no_count() -> None:
    """The workload of the image, and the same program brought by the job."""
    operations = ("getppid", "open-close", "pipe-round-trip")
    options = ("--clock", "--settle", "2")
    inside = counts_of(run_job(syscalls_job(*options, *operations)))
    program = guest_program()
    brought = "/brought/syscalls"
    job = Job(
        argv=(brought, *options, *operations),
        files=(JobFile(program, brought, 0o755),),
    )
    outside = counts_of(run_job(job))
    regions = merged_regions(inside), merged_regions(outside)
    for name in operations:
        one, two = regions[0][name], regions[1][name]
        assert one.cost("own", kernel=False) == two.cost("own", kernel=False), name
        assert one.median_own_insns() == two.median_own_insns(), name
    assert regions[0]["getppid"].cost("own") == regions[1]["getppid"].cost("own")
