# SPDX-License-Identifier: GPL-2.0-or-later
"""A program of the user's that is compiled with -DKDELTA_TIMED, in C and in C++."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kdelta.host.native import native_folder

PROGRAM = """
#include <time.h>
#include "kdelta.h"

static void spend(long ns)
{
    struct timespec begin, now;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < ns);
}

int main(void)
{
    kdelta_begin("short \\\\ \\"ones\\"");
    for (int i = 0; i < 4000; i++) {
        spend(3000);
        kdelta_iter();
    }
    kdelta_end();
    kdelta_begin("whole");
    spend(5000000);
    kdelta_end();
    return 0;
}
"""

COUNTED = """
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t count, clock_reads;
static int is_on;

static long open_counter(long number, ...)
{
    return number == SYS_perf_event_open ? 500 : -1;
}

static ssize_t read_counter(int fd, void *to, size_t size)
{
    uint64_t values[3] = {count, count, count};

    memcpy(to, values, size);
    return fd == 500 ? (ssize_t)size : -1;
}

static int turn(int which)
{
    is_on = which == PR_TASK_PERF_EVENTS_ENABLE;
    return 0;
}

static int read_clock(clockid_t which, struct timespec *time)
{
    clock_reads++;
    return clock_gettime(which, time);
}

static void spend(uint64_t n)
{
    count += is_on ? n : 0;
}

static void aside(void)
{
    spend(1000);
}

#define syscall open_counter
#define read read_counter
#define prctl turn
#define clock_gettime read_clock
#include "kdelta.h"

static void region(const char *name, uint64_t n)
{
    spend(70);
    kdelta_begin(name);
    spend(n);
    kdelta_aside(aside);
    kdelta_end();
}

int main(void)
{
    region("first", 300);
    region("second", 20);
    kdelta_begin("as long as is wanted");
    clock_reads = 0;
    while (kdelta_wants_more())
        kdelta_iter();
    if (clock_reads)
        return 1;
    kdelta_end();
    return 0;
}
"""


def regions(
    folder: Path, compiler: str, ending: str, program_text: str = PROGRAM
) -> list[dict[str, Any]]:
    source, program, results = (folder / name for name in (f"a.{ending}", "a.out", "results"))
    source.write_text(program_text)
    include = f"-I{native_folder() / 'include'}"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-DKDELTA_TIMED", include]
    subprocess.run([compiler, *flags, source, "-o", program], check=True)
    with results.open("wb") as file:
        env = {**os.environ, "KDELTA_TIMED_FD": str(file.fileno())}
        subprocess.run([program], env=env, pass_fds=[file.fileno()], check=True)
    # Without the variable it runs, and times nothing.
    plain = subprocess.run([program], check=True, capture_output=True)
    assert plain.stdout + plain.stderr == b""
    return [json.loads(line) for line in results.read_text().splitlines()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("compiler", "ending"), [("gcc", "c"), pytest.param("g++", "cc", marks=pytest.mark.slow)]
)
def test_its_regions_are_timed(tmp_path: Path, compiler: str, ending: str) -> None:
    short, whole = regions(tmp_path, compiler, ending)
    assert short["region"] == 'short \\ "ones"'
    assert short["iterations"] == 4000
    ns_per_tick = short["ns"] / short["ticks"]
    assert 10 < len(short["samples"]) <= 128
    for ticks, iterations in short["samples"]:
        # Each iteration waits for 3 microseconds; a batch lasts for 20 at least.
        assert ticks * ns_per_tick / iterations > 2900
        assert ticks * ns_per_tick > 19_000
    assert whole["region"] == "whole"
    ((ticks, iterations),) = whole["samples"]
    assert (whole["iterations"], iterations) == (1, 1)
    assert 5_000_000 <= ticks * whole["ns"] / whole["ticks"] <= whole["ns"]
    assert whole["ns"] >= 5_000_000


@pytest.mark.long
def test_counters_are_of_their_region_alone(tmp_path: Path) -> None:
    first, second, longest = regions(tmp_path, "gcc", "c", COUNTED)
    assert first["counters"]["kernel_instructions"] == [300, 300, 300]
    assert second["counters"]["kernel_instructions"] == [20, 20, 20]
    assert len(longest["samples"]) >= 32
    assert longest["ns"] >= 20_000_000 * 0.9
