# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that go wrong, and caches that lack something."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdelta.host.dirs import cache_dir
from kdelta.host.native import native_folder
from tests.machines.bench import kernel
from tests.robust.lab import processes, shared_cache

SmallDisk = Callable[[str], Path]

_SOURCES = {
    "good": "int main(void) { return 0; }",
    "exits-3": "int main(void) { return 3; }",
    "crashes": "int main(void) { *(volatile int *)0 = 1; }",
    "needs-avx2": 'int main(void) { __asm__ volatile("vpaddd %ymm0,%ymm0,%ymm1"); }',
    "spins": """
#include <kdelta.h>
int main(void)
{
    kdelta_begin("spin");
    for (;;)
        __asm__ volatile("");
}""",
    "false-packets": """
#include <kdelta.h>
int main(void)
{
    kdelta_begin("a"); kdelta_iter(); kdelta_end();
    kdelta_message("packets\\na -1 -1\\n", 16);
    return 0;
}
""",
    # More than may be sent, in messages as short as can be.
    "sends": """
#include <kdelta.h>
int main(void)
{
    for (int i = 0; i < 1500000; i++)
        kdelta_message("", 0);
    return 0;
}""",
    # A region for each request, as it should not be done.
    "begins": """
#include <kdelta.h>
int main(void)
{
    char name[] = "r00000";
    for (int i = 0; i < 10100; i++) {
        for (int at = 5, left = i; at; at--, left /= 10)
            name[at] = '0' + left % 10;
        kdelta_begin(name);
    }
}""",
    # Two tasks that mark regions at once, as it should not be done.
    "marks-at-once": """
#include <kdelta.h>
#include <unistd.h>
int main(void)
{
    char byte = 0;
    int pipes[2];
    if (pipe(pipes))
        return 1;
    if (!fork()) {
        if (read(pipes[0], &byte, 1) == 1)
            kdelta_begin("right");
        kdelta_iter(), kdelta_end();
        _exit(0);
    }
    kdelta_begin("left");
    if (write(pipes[1], &byte, 1) != 1)
        return 1;
    usleep(1000), kdelta_iter(), kdelta_end();
    return 0;
}""",
    "prints": """
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    static char text[4096];
    int console = open("/dev/console", O_WRONLY);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\\n';
    for (int i = 0; argc < 2 || i < 50; i++)
        if (write(console, text, sizeof text) < 0 || write(1, text, sizeof text) < 0)
            if (argc > 1)
                return 1;
}""",
    "begins-only": """
#include <kdelta.h>
#include <unistd.h>
int main(void)
{
    kdelta_begin("open");
    for (int i = 0; i < 100; i++) {
        getppid();
        kdelta_iter();
    }
}""",
    "ends-only": """
#include <kdelta.h>
int main(void)
{
    kdelta_end();
}""",
    "iterates-only": """
#include <kdelta.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 100; i++) {
        getppid();
        kdelta_iter();
    }
}""",
    "five": """
#include <kdelta.h>
#include <unistd.h>
int main(void)
{
    kdelta_begin("five");
    for (int i = 0; i < 5; i++) {
        getppid();
        kdelta_iter();
    }
    kdelta_end();
}""",
    "grows": """
#include <kdelta.h>
#include <unistd.h>
int main(void)
{
    kdelta_begin("grows");
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < i; k++)
            getppid();
        kdelta_iter();
    }
    kdelta_end();
}""",
    "sleeps": """
#include <unistd.h>
int main(void)
{
    for (;;)
        pause();
}""",
}


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A static program of that name."""
    folder = tmp_path_factory.mktemp("programs")

    def compiled(name: str) -> Path:
        path = folder / name
        if not path.exists():
            source = folder / f"{name}.c"
            source.write_text(_SOURCES[name])
            include = f"-I{native_folder() / 'include'}"
            argv = ["gcc", "-O1", "-static", "-Wall", "-Werror", include, "-o", path, source]
            subprocess.run([*map(str, argv)], check=True)
        return path

    return compiled


@pytest.fixture(autouse=True)
def _no_process_left(own_data: Path) -> Iterator[None]:
    """A test that fails because something was left over does not leave it over itself."""
    yield
    for pid in processes(data=own_data):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def user_cache() -> Path:
    """The user's cache, with the kernel in it, before the test makes its own."""
    kernel()
    return cache_dir()


@pytest.fixture
def no_snapshots(user_cache: Path, own_cache: Path) -> Path:
    """A cache that has all but snapshots."""
    shared_cache(own_cache, user_cache, "kernels", "native", "guests", "apt", "apt-answers")
    return own_cache


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Makes folders with little space."""
    mounted: list[Path] = []

    def make(size: str) -> Path:
        folder = tmp_path / f"disk-{size}"
        folder.mkdir()
        argv = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        if os.geteuid() or subprocess.run(argv, check=False, capture_output=True).returncode:
            pytest.skip("a small disk can only be mounted as root")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)
