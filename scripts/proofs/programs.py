#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether 20 programs of Debian's run in a guest as on the host, without --file.

Each trial compares two kernels by a program of this host, or of packages that are unpacked and not
installed. It looks whether the program prints in both guests what it prints on the host, or is
reported as one that a clock ends, and makes the unperturbed runs once more: counts that differ end
it. `--kernels` names others than those that kdelta is developed on.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec
from campaign import BUILD, NEW, OLD, Proof

from kdelta.host.files import make_folder
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.progress import Silent
from kdelta.lab.reports import attachment
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.errors import KdeltaError
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare

KERNELS = (OLD, NEW)
PACKAGES = ("redis-server", "nginx", "apache2-utils", "rsync", "ffmpeg")
LIBRARIES = (".", "blas", "lapack", "pulseaudio")
"""Folders of libraries that a program of these packages finds by links of the installed system."""
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root"}
"""Of programs in a guest; those on the host get the same."""
TIME = 1_700_000_000
LINES = 3000
REDIS = """\
#!/bin/sh
{usr}/bin/redis-check-rdb --version >/dev/null
{usr}/bin/redis-server --port 7777 --save '' --daemonize no >server.log &
until {usr}/bin/redis-cli -p 7777 ping >/dev/null 2>&1; do sleep 0.1; done
{usr}/bin/redis-benchmark -p 7777 -n 500 -c 5 -q -t set,get | grep -c 'requests per second'
{usr}/bin/redis-cli -p 7777 set key value
{usr}/bin/redis-cli -p 7777 get key
{usr}/bin/redis-cli -p 7777 shutdown nosave
wait
"""
NGINX = """\
#!/bin/sh
{usr}/sbin/nginx -p . -c nginx.conf &
until {usr}/bin/ab -n 1 http://127.0.0.1:7778/text >/dev/null 2>&1; do sleep 0.1; done
{usr}/bin/ab -n 100 -c 4 http://127.0.0.1:7778/text | grep -E '^(Document Length|Complete|Failed)'
kill $!
wait
"""
NGINX_CONF = """\
daemon off;
master_process off;
error_log error.log;
pid nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp;
    uwsgi_temp_path temp; scgi_temp_path temp;
    server { listen 127.0.0.1:7778; root .; }
}
"""
SQL = "SELECT name, n FROM t WHERE n % 7 = 3 ORDER BY n DESC LIMIT 20; SELECT sum(n) FROM t;"
PYTHON = "import collections, json, re; print(json.dumps(collections.Counter(open('text').read())))"
PERL = "use POSIX; use Data::Dumper; print floor(3.7), Dumper([1, {a => 2}])"
AWK = "{ n[$2] += $3 } END { for (k = 0; k < 7; k++) print k, n[k] }"
FFMPEG = (
    *("-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc=size=64x64:rate=5:duration=1"),
    *("-threads", "1", "-f", "framemd5", "-"),
)
BY_CLOCK = "a clock ends it"
"""How kdelta's reason begins why such a program has no verdict."""


class Case(msgspec.Struct, frozen=True):
    """A command. `by_lines`: its lines have no order. `compared`: whether what it prints is a
    matter of the program alone; if not, a clock ends it, and kdelta has to say so.
    """

    command: tuple[str, ...]
    by_lines: bool = False
    compared: bool = True


class Trial(msgspec.Struct, frozen=True):
    """How a program ended on both kernels.

    as_on_host  it printed what it prints here, or is no matter of that
    by_clock    it was reported as ended by a clock
    printed     what it printed here and in both guests, if that is not the same
    files       that were found and given to the guest, with and without content
    insns       by kernel, of each region
    repeats     the counts of a second run are the same
    """

    name: str
    ended: tuple[str, ...]
    as_on_host: bool = False
    by_clock: bool = False
    printed: tuple[tuple[str, ...], ...] = ()
    files: tuple[int, int] = (0, 0)
    insns: tuple[tuple[str, ...], ...] = ()
    repeats: bool = False


def cases(usr: Path) -> dict[str, Case]:
    """Return the commands, all in the folder that `make_place` fills."""
    shell = ("sh", "-c")
    return {
        "ls": Case(("ls", "-R", ".")),
        "find": Case(("find", "tree", "-type", "f", "-name", "*1"), by_lines=True),
        "grep": Case(("grep", "-r", "7", "tree"), by_lines=True),
        "tar": Case((*shell, "tar cf - --sort=name tree | sha256sum")),
        "gzip": Case((*shell, "gzip -c text | sha256sum")),
        "sqlite3": Case(("sqlite3", "data.db", SQL)),
        "python3": Case(("/usr/bin/python3", "-c", PYTHON)),
        "perl": Case(("perl", "-e", PERL)),
        "git": Case(("git", "status")),
        "make": Case(("make",)),
        "sort": Case(("sort", "-k", "2", "text")),
        "awk": Case(("awk", AWK, "text")),
        "gcc": Case((*shell, "gcc -c part.c -o part.o && sha256sum part.o")),
        "openssl": Case(
            ("openssl", "speed", "-seconds", "1", "-bytes", "64", "sha256"), compared=False
        ),
        "redis": Case(("./redis",)),
        "nginx": Case(("./nginx",)),
        "ffmpeg": Case((f"{usr}/bin/ffmpeg", *FFMPEG)),
        "jq": Case(("jq", "-c", ".[] | select(.n > 90)", "data.json")),
        "rsync": Case((f"{usr}/bin/rsync", "-a", "--itemize-changes", "tree/", "copy/")),
        "ssh-keygen": Case(
            (*shell, "ssh-keygen -q -t ed25519 -N '' -f key && wc -l <key && stat -c %a key")
        ),
    }


def make_place(place: Path, usr: Path) -> None:
    """Make the folder that the commands work in, the same each time."""
    shutil.rmtree(place, ignore_errors=True)
    random = Random(1)
    for number in range(40):
        path = make_folder(place / f"tree/folder-{number % 5}") / f"file-{number:02}"
        path.write_text("".join(f"{random.randrange(1000)}\n" for _ in range(20)))
    (place / "tree/link").symlink_to("folder-1/file-01")
    rows = (f"{i} {random.randrange(7)} {random.randrange(1000)}\n" for i in range(LINES))
    (place / "text").write_text("".join(rows))
    (place / "data.json").write_text(json.dumps([{"n": n, "name": f"row {n}"} for n in range(100)]))
    (place / "part.c").write_text(
        '#include <stdio.h>\nint part(void)\n{\n    return puts("part");\n}\n'
    )
    (place / "old").write_text("made from source\n")
    (place / "Makefile").write_text(
        "all: old new\nold: part.c\n\techo old\nnew: part.c\n\tcp part.c new\n"
    )
    (place / "nginx.conf").write_text(NGINX_CONF)
    for name, text in (("redis", REDIS), ("nginx", NGINX)):
        (place / name).write_text(text.format(usr=usr))
        (place / name).chmod(0o755)
    rows = (f"({i}, 'row {i}', {random.randrange(1000)})" for i in range(1000))
    table = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INT)"
    sql = f"{table}; INSERT INTO t VALUES {','.join(rows)};"
    subprocess.run(["sqlite3", place / "data.db", sql], check=True)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    when = {
        **ENVIRONMENT,
        "GIT_AUTHOR_DATE": f"{TIME} +0000",
        "GIT_COMMITTER_DATE": f"{TIME} +0000",
    }
    for words in (["init", "-q"], ["add", "text", "tree"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=place, env=when, check=True)
    (place / "tree/folder-2/file-02").write_text("changed\n")
    for path in sorted(place.rglob("*"), reverse=True):
        newer = path.name == "old"
        os.utime(path, (TIME + newer, TIME + newer), follow_symlinks=False)
    os.utime(place, (TIME, TIME))


def unpacked(out: Path) -> Path:
    """Return the usr folder of the packages, and of what they need that this host lacks."""
    root, debs = out / "root", make_folder(out / "debs")
    if not (out / "unpacked").exists():
        words = ["--print-uris", "-qq", "-y", "--no-install-recommends", "--reinstall"]
        asked = ["apt-get", "install", *words, *PACKAGES]
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        names = [line.split()[1].partition("_")[0] for line in said.splitlines()]
        subprocess.run(["apt-get", "-q", "download", *names], cwd=debs, check=True)
        for deb in sorted(debs.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
        (out / "unpacked").touch()
    return root / "usr"


def on_host(case: Case) -> tuple[str, str]:
    """Return what the command prints here: standard output and error."""
    loader = {"LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"]}
    done = subprocess.run(
        case.command,
        env=ENVIRONMENT | loader,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def printed(run: Run, store: Store) -> tuple[str, str]:
    """Return the same of a guest."""
    return attachment(run, "stdout", store), attachment(run, "stderr", store)


async def trial(name: str, case: Case, kernels: Sequence[str], store: Store) -> Trial:
    """Compare both kernels, and what they print with the host."""
    progress = Silent()
    once = LabRequest(perturbations=1)
    program = Program(case.command)
    request = CompareRequest(base=kernels[0], others=tuple(kernels[1:]), program=program, lab=once)
    (found,) = await run_compare(request, Lab(store, progress))
    sides = (found.base, found.other)
    again = msgspec.structs.replace(request, lab=msgspec.structs.replace(once, rerun=True))
    await run_compare(again, Lab(store, progress))  # LabError if the counts are not the same
    runs = [side.done[0].run for side in sides]
    order: Callable[[str], str] = (
        (lambda text: "\n".join(sorted(text.splitlines()))) if case.by_lines else str
    )
    host = tuple(map(order, on_host(case)))
    guests = [tuple(map(order, printed(run, store))) for run in runs]
    files = attachment(runs[0], "files", store).splitlines()
    verdicts = [one.verdict for one in found.effects.operations] if found.effects else []
    is_same = all(one == host for one in guests)
    return Trial(
        name,
        tuple(run.word + (f": {run.detail}" if run.detail else "") for run in runs),
        as_on_host=is_same or not case.compared,
        by_clock=any(one.reason.startswith(BY_CLOCK) for one in verdicts),
        printed=() if is_same else (host, *guests),
        files=(sum(one.startswith("content ") for one in files), len(files)),
        insns=tuple(
            tuple(str(region.mean_own_insns()) for region in counts.regions)
            for side in sides
            for counts in side.counts[:1]
        ),
        repeats=True,
    )


def made(names: Sequence[str], options: argparse.Namespace) -> Iterator[Trial]:
    """Run programs of this host, or of packages, in a place that is the same each time."""
    out = make_folder(options.out.absolute())
    usr, place = unpacked(out), out / "place"
    libraries = usr / "lib/x86_64-linux-gnu"
    os.environ["LD_LIBRARY_PATH"] = ":".join(str(libraries / one) for one in LIBRARIES)
    known = cases(usr)
    with open_store() as store:
        for name in names:
            make_place(place, usr)
            os.chdir(place)
            try:
                yield asyncio.run(trial(name, known[name], options.kernels, store))
            except KdeltaError as error:
                yield Trial(name, (error.message,))


def wrong(found: Sequence[Trial]) -> Iterator[str]:
    """Yield the programs that are not as on the host, and what a clock ends without a word."""
    known = cases(Path())
    for one in found:
        is_right = one.as_on_host and one.repeats and set(one.ended) == {"ok"}
        if not is_right or not (one.by_clock or known[one.name].compared):
            yield f"{one.name}: {', '.join(one.ended)} {one.printed}"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the kernels."""
    parser.add_argument("--kernels", nargs=2, default=KERNELS, metavar="KERNEL")


PROOF = Proof(
    record=Trial,
    file=BUILD / "programs/trials.jsonl",
    trials=lambda _: cases(Path()),
    make=made,
    wrong=wrong,
    summary=lambda one: f"{', '.join(one.ended)}, {one.files[0]} files",
    options=options,
)


def check_output_that_differs_and_a_clock_without_a_word_are_wrong() -> None:
    """Check trials that are made up."""
    good = Trial("ls", ("ok", "ok"), as_on_host=True, repeats=True)
    clock = msgspec.structs.replace(good, name="openssl", by_clock=True)
    assert list(wrong([good, clock])) == []
    for bad in (
        msgspec.structs.replace(good, as_on_host=False),
        msgspec.structs.replace(good, repeats=False),
        msgspec.structs.replace(good, ended=("ok", "panic")),
        msgspec.structs.replace(clock, by_clock=False),
    ):
        assert len(list(wrong([bad]))) == 1, bad


if __name__ == "__main__":
    sys.exit(PROOF.main())
