# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of the host that a program asks for are in the guest, found on one kernel for all."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from kdelta.host.emulator import find_compiler
from kdelta.host.native import STATIC_FLAGS, NativeProgram, build_program
from kdelta.host.target import target
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command
from tests.machines.bench import ARM, ARM64, NEW, OLD

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("own_found")]

SCRIPT = """\
#!/bin/sh
LC_ALL=C ls -R tree
cat tree/deep/text tree/link
cat tree/none /no/such/file 2>/dev/null
. ./more
ls -l --time-style=full-iso tree/deep | sed 's/^total .*/total/'
echo made >tree/deep/made && cat tree/deep/made
readlink tree/link
pwd
exit 3
"""
READER = """\
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
    char text[64] = "";
    struct stat state;
    int fd = open("tree/link", O_RDONLY);

    if (read(fd, text, sizeof text - 1) < 0)
        return 1;
    printf("%s%d %d\\n", text, stat("tree/deep/unread", &state), stat("tree/none", &state));
    printf("%d\\n", open("tree/deep/made", O_CREAT | O_WRONLY, 0600) > fd);
}
"""
UNSEEN = """\
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static int is_traced(void)
{
    char line[256];
    int tracer = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        sscanf(line, "TracerPid: %d", &tracer);
    return tracer;
}
int main(void)
{
    static const char *const names[] = {
        "read", "mmap", "exec", "splice", "sendfile", "link", "back", "moved", "none",
    };
    struct stat state;
    char byte = 0;
    int pipes[2];

    for (int i = 0; i < 9; i++)
        stat(names[i], &state);
    if (is_traced())
        return 0;
    read(open("read", O_RDONLY), &byte, 1);
    byte += *(char *)mmap(NULL, 1, PROT_READ, MAP_PRIVATE, open("mmap", O_RDONLY), 0);
    if (!vfork())
        execl("./exec", "exec", (char *)NULL), _exit(0);
    wait(NULL);
    if (pipe(pipes))
        return 1;
    splice(open("splice", O_RDONLY), NULL, pipes[1], NULL, 1, 0);
    sendfile(pipes[1], open("sendfile", O_RDONLY), NULL, 1);
    link("link", "other"), read(open("other", O_RDONLY), &byte, 1);
    stat("back", &state), read(open("back", O_RDONLY), &byte, 1);
    utimensat(AT_FDCWD, "back", (struct timespec[2]){state.st_atim, state.st_mtim}, 0);
    rename("moved", "away"), read(open("away", O_RDONLY), &byte, 1);
    stat("none", &state);
    return 0;
}
"""
TIME_NS = 1_600_000_000_123_456_789


class Heard(Silent):
    """A progress that keeps what it hears."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.steps: list[str] = []

    def log(self, line: str) -> None:
        self.lines.append(line)

    def begin(self, step: str, *_: float | None) -> None:
        self.steps.append(step)


@pytest.fixture
def own_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in, with the script and its files, and no names of other runs."""
    monkeypatch.setattr("kdelta.lab.found.names_folder", lambda: tmp_path / "found")
    (tmp_path / "found").mkdir()
    place = tmp_path / "place"
    deep = place / "tree/deep"
    (deep / "empty").mkdir(parents=True)
    (deep / "text").write_text("text\n")
    (deep / "text").chmod(0o640)
    (deep / "unread").write_bytes(bytes(12345))
    (place / "tree/link").symlink_to("deep/text")
    (place / "script").write_text(SCRIPT)
    (place / "script").chmod(0o755)
    (place / "more").write_text("echo more\n")
    for path in (deep / "text", deep / "unread", deep / "empty"):
        os.utime(path, ns=(TIME_NS, TIME_NS))
    monkeypatch.chdir(place)


def run_once(
    folder: Path, heard: Heard, *command: str, find: bool = True, kernel: str = OLD
) -> RunResult:
    program = Program(command, find=find)
    request = RunRequest(kernel=kernel, program=program, lab=LabRequest(perturbations=1))
    with Store.open(folder / "store") as store:
        (done,) = asyncio.run(run_command(request, Lab(store, heard)))
    return done


def printed(folder: Path, done: RunResult, name: str = "stdout") -> str:
    with Store.open(folder / "store") as store:
        return store.get(done.run.attachments[name]).decode()


def without_owners(text: str) -> list[str]:
    """Lines of ls -l without link counts and sizes of folders, which are the file system's."""
    rows = [line.split() for line in text.splitlines()]
    return [
        " ".join([row[0], *row[5:]]) if row and row[0].startswith("drwx") else " ".join(row)
        for row in rows
    ]


@pytest.mark.slow
def test_a_script_prints_in_the_guest_what_it_prints_on_the_host(tmp_path: Path) -> None:
    heard = Heard()
    done = run_once(tmp_path, heard, "./script")
    (tmp_path / "place/tree/deep/made").unlink(missing_ok=True)
    on_host = subprocess.run(["./script"], capture_output=True, text=True, check=False)
    (tmp_path / "place/tree/deep/made").unlink()
    assert done.run.detail.startswith("exit 3; it printed no error; ")
    assert "; see: kdelta shell " in done.run.detail
    assert without_owners(printed(tmp_path, done)) == without_owners(on_host.stdout)
    assert sum("find files" in step for step in heard.steps) == 1
    assert any("files of this host" in line for line in heard.lines)
    found = printed(tmp_path, done, "files").splitlines()
    place = (tmp_path / "place").resolve()
    assert f"content {place}/tree/deep/text" in found
    assert f"size {place}/tree/deep/unread" in found
    assert f"folder {place}/tree/deep/empty" in found


@pytest.mark.slow
def test_file_that_a_run_reads_by_any_means_is_there_in_the_next(tmp_path: Path) -> None:
    """The program only asks about them where it is traced, as it is when its files are found."""
    place = tmp_path / "place"
    names = ("read", "mmap", "exec", "splice", "sendfile", "link", "back", "moved")
    for name in (*names, "none"):
        (place / name).write_text("#!/bin/true\n")
        (place / name).chmod(0o755)
    (place / "unseen.c").write_text(UNSEEN)
    program = build_program(NativeProgram("unseen", place, ("unseen.c",), STATIC_FLAGS))
    heard = Heard()
    done = run_once(tmp_path, heard, str(program))
    found = printed(tmp_path, done, "files").splitlines()
    below = {Path(path).name: word for word, path in (one.split() for one in found)}
    assert {below[name] for name in names} == {"content"}
    assert below["none"] == "size"
    assert sum("once more, with it" in line for line in heard.lines) == 1


@pytest.mark.slow
def test_files_are_found_again_only_when_the_host_has_others(tmp_path: Path) -> None:
    def searched(*, find: bool = True) -> tuple[bool, RunResult]:
        heard = Heard()
        done = run_once(tmp_path, heard, "cat", "tree/deep/text", "absent", find=find)
        return any("find files" in step for step in heard.steps), done

    assert searched()[0]
    again, done = searched()
    assert not again
    assert printed(tmp_path, done) == "text\n"
    Path("absent").write_text("here now\n")
    again, done = searched()
    assert again
    assert printed(tmp_path, done) == "text\nhere now\n"
    Path("absent").write_text("changed\n")
    assert printed(tmp_path, searched()[1]) == "text\nchanged\n"
    again, done = searched(find=False)
    assert not again
    assert "stdout" not in done.run.attachments


@pytest.mark.slow
def test_two_kernels_get_the_same_files_and_print_the_same(tmp_path: Path) -> None:
    heard = Heard()
    request = CompareRequest(
        base=OLD,
        others=(NEW,),
        program=Program(("cat", "tree/link", "more")),
        lab=LabRequest(perturbations=1),
    )
    with Store.open(tmp_path / "store") as store:
        (one,) = asyncio.run(run_compare(request, Lab(store, heard)))
        done = [side.done[0].run for side in (one.base, one.other)]
        outputs = [store.get(run.attachments["stdout"]) for run in done]
        files = [store.get(run.attachments["files"]) for run in done]
    assert outputs == [b"text\necho more\n"] * 2
    assert files[0] == files[1]
    assert sum("find files" in step for step in heard.steps) == 2


@pytest.mark.parametrize(
    ("arch", "kernel"), [("arm64", ARM64), pytest.param("arm", ARM, marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_other_architectures_find_files_of_static_programs(
    tmp_path: Path, arch: str, kernel: str
) -> None:
    (tmp_path / "reader.c").write_text(READER)
    by = find_compiler(target(arch))
    built = NativeProgram("reader", tmp_path, ("reader.c",), STATIC_FLAGS, by=by)
    done = run_once(tmp_path, Heard(), str(build_program(built)), kernel=kernel)
    assert done.counts, done.run.detail
    assert printed(tmp_path, done) == "text\n0 -1\n1\n"
