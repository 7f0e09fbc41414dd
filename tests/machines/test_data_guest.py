# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses of data of a program that strides over arrays in a guest: what arithmetic says."""

import asyncio
import functools
import subprocess

import msgspec
import pytest

from kdelta.counts.trace import Trace
from kdelta.counts.trace_file import read_traces
from kdelta.cpus.cache import Cache
from kdelta.cpus.catalog import load_cpu
from kdelta.guests.job import Job, JobFile, job_archive
from kdelta.host.native import native_folder
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Recording, run_guest
from kdelta.replay.as_executed import data_misses
from tests.machines.bench import counts_of, guest, new_setting, process_folder

pytestmark = [pytest.mark.guest, pytest.mark.slow]

PASSES = 2
CPU = msgspec.structs.replace(
    load_cpu("zen4"),
    l1d=Cache(64, 12, 64),
    l2=Cache(2048, 16, 64),
    dtlb=Cache(16, 2, 4096),
    dtlb_large=None,
    dtlb_store=None,
    stlb=Cache(128, 16, 4096),
)
"""48 KiB of L1D, so that of 256 KiB under LRU each line is gone when it comes again, and 16 KiB
stay; a TLB of 32 pages, of which the same holds: these are 64 pages, and 4."""

STRIDES = """
#include "kdelta.h"
#include <string.h>
static char table[256 << 10] __attribute__((aligned(4096)));

/* Nothing but the accesses that are asked for: neither a stack nor a constant is read. */
#define PASS(insn, bytes) \\
    __asm__ volatile("mov $table, %%rax\\n1: " insn "\\nadd $64, %%rax\\n" \\
                     "cmp $table+" #bytes ", %%rax\\njb 1b" \\
                     : : : "rax", "rcx", "cc", "memory")
#define REGION(name, insn, bytes) \\
    kdelta_begin(name); \\
    PASS(insn, bytes); \\
    PASS(insn, bytes); \\
    kdelta_end()

int main(void)
{
    memset(table, 1, sizeof table);
    REGION("small", "movb (%%rax), %%cl", 16384);
    REGION("large", "movb (%%rax), %%cl", 262144);
    REGION("stores", "movb $2, (%%rax)", 262144);
    return 0;
}
"""


@functools.cache
def _regions() -> dict[str, Trace]:
    folder = process_folder()
    program, source = folder / "strides", folder / "strides.c"
    source.write_text(STRIDES)
    flags = ["-O1", "-static", "-no-pie", f"-I{native_folder() / 'include'}"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    job = Job(argv=("/strides",), files=(JobFile(program, "/strides", 0o755),), seconds=60)

    async def go() -> GuestOutcome:
        where = guest()
        snapshot = await obtain_snapshot(where, new_setting())
        assert not isinstance(snapshot, GuestOutcome)
        setting = msgspec.structs.replace(new_setting(), recording=Recording("data"))
        return await run_guest(where, job_archive(job), setting, snapshot)

    outcome = asyncio.run(go())
    counts_of(outcome, {"strides": program.read_bytes()})
    assert outcome.counts
    return {trace.region: trace for trace in read_traces(outcome.counts)}


@pytest.mark.parametrize(
    ("region", "lines", "pages", "kind"),
    [("small", 0, 0, ""), ("large", 4096, 64, ""), ("stores", 4096, 64, "-store")],
)
def test_arrays_that_fit_and_such_that_do_not(
    region: str, lines: int, pages: int, kind: str
) -> None:
    misses = data_misses(_regions()[region], CPU).total()
    found = {str(kind): count for kind, count in misses.items()}
    assert found[f"l1d{kind}"] == PASSES * lines
    assert found[f"dtlb{kind}"] == PASSES * pages
    assert not any(count for name, count in found.items() if name.startswith(("l2", "stlb")))
    other = "" if kind else "-store"
    assert (found[f"l1d{other}"], found[f"dtlb{other}"]) == (0, 0)
