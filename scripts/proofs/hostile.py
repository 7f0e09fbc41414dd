#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Give kdelta hostile files, arguments and programs, and look whether it keeps what it promises.

input  a file, a repository, an argument or a variable of hostile_inputs.py, by the seed
guest  a program of hostile_guests/, run in a guest
change one thing that a figure depends on, between two commands: hostile_changes.py

After each: no bug, a documented exit code, no process left, no file made or changed outside the
trial's folder, no program of the trial run on the host, no control character on the terminal but
kdelta's own, less than 2 GiB of memory, and an end in time; some are ended by SIGTERM, within 2 s.
After each tenth guest an honest run prints what it printed before. After a change a command makes
its runs again, and in each run of its answer the program printed what it then must; or the command
is refused.

    scripts/proofs/hostile.py --inputs 200

As root, each trial has a /tmp of its own, which is to stay empty.
"""

import argparse
import contextlib
import fcntl
import functools
import hashlib
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from campaign import BUILD, OLD, ROOT, Proof, marked_processes
from hostile_changes import FORMS, Depends, kind_of, words_of
from hostile_inputs import INPUTS
from hostile_made import Command

from kdelta.host.dirs import cache_dir
from kdelta.lab.reports import attachment
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store

KDELTA = Path(sys.executable).with_name("kdelta")
SOURCES = Path(__file__).with_name("hostile_guests")
INCLUDES = ROOT / "native/include"
INPUT_SECONDS, GUEST_SECONDS, TERM_SECONDS = 60.0, 40.0, 2.0
MEMORY_BYTES = 2 << 30
SAMPLE = 0.12
"""What part of the trials is ended by SIGTERM."""
SAID_CHARACTERS = 400
OUTSIDE = ("home", "canary", "tmp")
"""Folders of a trial in which nothing may change."""
TERMINATED = (130, 128 + signal.SIGTERM, -signal.SIGTERM)
"""The last is that of a command that had not begun to start."""
REFUSED = (2, 3, 255)
"""The last is that of a slip with --against."""
OWN = re.compile(rb"\x1b\[(?:\?25[lh]|[12]K|1A|0m|3[123]m)|\r\n|\r(?=\x1b\[[12])")
"""What kdelta itself writes to a terminal: progress, and the colours of verdicts."""
CONTROL = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
MARK = "HOME"
"""A variable that all programs of a trial inherit: host/environment.py."""


class Trial(msgspec.Struct, frozen=True):
    """One trial. wrong: what was not as it must be; empty if all was."""

    of: str
    kind: str
    number: int
    code: int
    seconds: float
    memory_bytes: int
    said: str
    wrong: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return its name."""
        return f"{self.of} {self.number}"


class Ended(msgspec.Struct, frozen=True):
    """How a command ended; code: negative if by a signal."""

    code: int
    seconds: float
    memory_bytes: int
    output: bytes
    wrong: tuple[str, ...]


class Place(msgspec.Struct, frozen=True):
    """Where a trial works. folder: its files."""

    folder: Path
    cache: Path
    data: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of its commands."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        own = {"KDELTA_CACHE_DIR": str(self.cache), "KDELTA_DATA_DIR": str(self.data)}
        return {**kept, **own, "TERM": "xterm", MARK: str(self.folder / "home")}


@contextlib.contextmanager
def place(root: Path, cache: Path, data: Path) -> Iterator[Place]:
    """Yield the folders of a trial, below `root`, with files that must stay as they are."""
    with tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as name:
        where = Place(Path(name), cache, data)
        for one in ("work", "ran", *OUTSIDE):
            (where.folder / one).mkdir()
        for one in ("home/.bashrc", "home/.gitconfig", "canary/file"):
            (where.folder / one).write_text("")
        yield where


def listing(where: Place) -> dict[str, tuple[int, int, str]]:
    """Return what must stay as it is: each file's mode, time of change and content."""
    found = {}
    for root in OUTSIDE:
        for path in sorted((where.folder / root).rglob("*")):
            stat = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path.relative_to(where.folder))] = (stat.st_mode, stat.st_mtime_ns, content)
    return found


def processes(where: Place) -> list[int]:
    """Return the processes that inherited the environment of that place."""
    return marked_processes(MARK, where.folder / "home")


def kill_all(where: Place) -> None:
    """Kill what is left of a trial."""
    for one in processes(where):
        with contextlib.suppress(OSError):
            os.kill(one, signal.SIGKILL)


def _most_bytes(pids: list[int]) -> int:
    """Return the most memory that one of these had resident, but for QEMU."""
    most = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            found = re.search(r"VmHWM:\s+(\d+) kB", status)
            if found and b"qemu" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                most = max(most, int(found[1]) << 10)
    return most


@functools.cache
def can_isolate() -> bool:
    """Return whether commands can have a /tmp of their own."""
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0  # noqa: PLW1510


def start(where: Place, command: Command, terminal: int) -> subprocess.Popen[bytes]:
    """Start a command, the leader of its own session, with a /tmp of its own if that can be."""
    argv: list[str | bytes | Path] = [str(KDELTA), *command.words]
    if can_isolate() and not where.folder.is_relative_to("/tmp"):
        script = f'mount --bind "{where.folder}/tmp" /tmp && exec "$@"'
        argv = ["unshare", "--mount", "sh", "-c", script, "sh", *argv]
    return subprocess.Popen(
        argv, cwd=where.folder / "work", env={**where.environment, **command.environment},
        stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, start_new_session=True,
    )  # fmt: skip


def run(where: Place, command: Command, limit: float, ended_after: float | None) -> Ended:
    """Run a command on a terminal of its own until it ends, or is ended."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    began = time.monotonic()
    process = start(where, command, theirs)
    os.close(theirs)
    output, wrong, most, until = bytearray(), [], 0, began + (ended_after or limit)
    while True:
        ended = process.poll() is not None
        if select.select([ours], [], [], 0.0 if ended else 0.2)[0]:
            try:
                output += os.read(ours, 1 << 16)
            except OSError:  # all writers are gone
                break
        elif ended:  # and has left others
            break
        most = max(most, _most_bytes([process.pid]))
        if time.monotonic() < until:
            continue
        most = max(most, _most_bytes(processes(where)))
        if ended_after is not None and until == began + ended_after:
            process.terminate()
            until += TERM_SECONDS
            continue
        wrong.append(f"has not ended after {time.monotonic() - began:.0f} s")
        kill_all(where)
        break
    os.close(ours)
    code = process.wait()
    return Ended(code, time.monotonic() - began, most, bytes(output), tuple(wrong))


def look(where: Place, ended: Ended, codes: tuple[int, ...]) -> Iterator[str]:
    """Yield what is not as it must be after a command."""
    yield from ended.wrong
    text = OWN.sub(b"", ended.output).decode("utf-8", "surrogateescape")
    if "Traceback" in text or "bug in kdelta" in text:
        yield "a bug"
    if not ended.wrong and ended.code not in codes:
        yield f"exit code {ended.code}"
    if found := CONTROL.search(text):
        yield f"control character: {text[max(0, found.start() - 40) : found.end() + 20]!r}"
    if ended.memory_bytes > MEMORY_BYTES:
        yield f"memory: {ended.memory_bytes >> 20} MiB"
    if left := processes(where):
        yield f"processes are left: {[Path(f'/proc/{one}/cmdline').read_bytes() for one in left]}"
    if ran := sorted(path.name for path in (where.folder / "ran").iterdir()):
        yield f"programs ran: {ran}"


def judged(where: Place, of: str, kind: str, number: int, command: Command) -> Trial:
    """Run a trial's command and look at what came of it."""
    chance = random.Random(f"{of} {number} end")
    limit = GUEST_SECONDS if of == "guest" else INPUT_SECONDS
    ended_after = chance.uniform(0.1, 4.0) if chance.random() < SAMPLE else None
    before = listing(where)
    ended = run(where, command, limit, ended_after)
    codes = command.codes if ended_after is None else (*command.codes, *TERMINATED)
    wrong = list(look(where, ended, codes))
    kill_all(where)
    after = listing(where)
    if changed := sorted(one for one in before | after if before.get(one) != after.get(one)):
        wrong.append(f"changed: {changed}")
    lines = OWN.sub(b"\n", ended.output).decode("utf-8", "replace").strip()
    said = lines if wrong else lines[-SAID_CHARACTERS:]
    return Trial(of, kind, number, ended.code, round(ended.seconds, 1), ended.memory_bytes,
                 said[-20 * SAID_CHARACTERS :], tuple(wrong))  # fmt: skip


def input_trial(root: Path, number: int, seed: int) -> Trial:
    """Give kdelta a hostile input; cache and store are those below `root`."""
    kind = list(INPUTS)[number % len(INPUTS)]
    with place(root, root / "cache", root / "data") as where:
        command = INPUTS[kind](where.folder, random.Random(f"{seed} {number}"))
        return judged(where, "input", kind, number, command)


def guest_trial(root: Path, number: int, kind: str) -> Trial:
    """Run a hostile program in a guest, with the user's cache."""
    with place(root, cache_dir(), root / "data") as where:
        shutil.copy2(root / "guest", where.folder / "work")
        options = ("--timeout", "20", "--seconds", "2", *(("--no-find",) if number % 3 else ()))
        words = ("run", OLD, *options, "--", "./guest", kind)
        return judged(where, "guest", kind, number, Command(words))


def change_trials(root: Path, numbers: Iterable[int], seed: int) -> Iterator[Trial]:
    """Yield a trial for each of these numbers; the user's cache, and a store below `root`."""
    made: dict[str, Depends] = {}
    with tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as name:
        for number in numbers:
            form, kind = FORMS[number % len(FORMS)], kind_of(number)
            if form not in made:
                (Path(name) / form).mkdir()
                made[form] = Depends(Path(name) / form, random.Random(f"{seed} {form} {number}"))
                _changed(root, form, made[form])
            made[form].change(kind)
            yield _changed(root, form, made[form], kind, number)


def _changed(root: Path, form: str, depends: Depends, kind: str = "", number: int = -1) -> Trial:
    data, began = root / "changed", time.monotonic()
    environment = {**os.environ, **depends.environment, "KDELTA_DATA_DIR": str(data)}
    before = _runs(data)
    done = subprocess.run(
        [KDELTA, *words_of(form, depends)], cwd=depends.folder, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    wrong = []
    if done.returncode in REFUSED:
        wrong += [] if re.search("^kdelta: ", done.stderr, re.MULTILINE) else ["silent"]
    elif done.returncode:  # an open verdict, or a program that failed, is no answer
        wrong.append(f"exit code {done.returncode}")
    else:
        answer = {one: text for one, text in _runs(data).items() if f'"{one}"' in done.stdout}
        wrong += _wrong_answer(answer, depends.printed(form), set(before), kind)
    if "bug in kdelta" in done.stderr:
        wrong.append("a bug")
    said = (done.stderr if wrong or done.returncode else "")[-SAID_CHARACTERS:]
    seconds = round(time.monotonic() - began, 1)
    return Trial(
        "change", f"{form} {kind}", number, done.returncode, seconds, 0, said, tuple(wrong)
    )


def _wrong_answer(
    answer: dict[str, str], printed: set[str], before: set[str], kind: str
) -> Iterator[str]:
    """Yield what is wrong with an answer: what its runs printed, by their ids. No program prints
    which QEMU it has, so all runs must be new if that changed.
    """
    if not answer.keys() - before or (kind == "qemu" and answer.keys() & before):
        yield "stale"
    if set(answer.values()) != printed:
        yield f"printed {set(answer.values())}, not {printed}"


def _runs(data: Path) -> dict[str, str]:
    """Return what programs printed in runs that went well, by the runs' ids."""
    with Store.open(data) as store:
        return {
            one.id: attachment(one, "stdout", store).strip()
            for one in store.runs()
            if one.status is RunStatus.OK
        }


def honest(root: Path) -> str:
    """Return what an honest run prints, less its id and time; its counts are those of the first."""
    words = ("run", OLD, "--quiet", "--rerun", "--", root / "guest", "good")
    env = {**os.environ, "KDELTA_DATA_DIR": str(root / "honest")}
    done = subprocess.run([KDELTA, *words], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{done.returncode}: {done.stderr}"
    return done.stdout.partition("\n")[2].rpartition("kdelta show")[0]


def guest_kinds(root: Path) -> list[str]:
    """Compile the programs of guests and return their kinds."""
    gcc = ("gcc", "-O1", "-static", "-pthread", f"-I{INCLUDES}", "-o", root / "guest")
    subprocess.run([*gcc, *SOURCES.glob("*.c")], check=True)
    listed = subprocess.run([root / "guest"], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def made(names: Sequence[str], options: argparse.Namespace) -> Iterator[Trial]:
    """Make trials: hostile inputs, guests, and changes between two commands."""
    root = options.out.resolve()
    (root / "cache").mkdir(parents=True, exist_ok=True)
    kinds = guest_kinds(root)
    trials = [(one.split()[0], int(one.split()[1])) for one in names]
    usual = honest(root) if any(of == "guest" for of, _ in trials) else ""
    for of, number in trials:
        if of == "input":
            yield input_trial(root, number, options.seed)
        elif of == "guest":
            one = guest_trial(root, number, kinds[number % len(kinds)])
            if number % 10 == 9 and (now := honest(root)) != usual:
                one = msgspec.structs.replace(one, wrong=(*one.wrong, f"then honest: {now}"))
            yield one
    yield from change_trials(root, [at for of, at in trials if of == "change"], options.seed)


def answer(found: Sequence[Trial]) -> str:
    """Return how many trials there are, and how many were refused."""
    counts = Counter(one.of for one in found)
    refused = Counter(one.of for one in found if one.code in REFUSED)
    return "\n".join(f"{of}: {n} trials, {refused[of]} refused" for of, n in counts.items())


PROOF = Proof(
    record=Trial,
    file=BUILD / "hostile/trials.jsonl",
    trials=lambda given: [
        f"{of} {number}"
        for of in ("input", "guest", "change")
        for number in range(getattr(given, f"{of}s"))
    ],
    make=made,
    wrong=lambda found: (f"{one.name}: {fault}" for one in found for fault in one.wrong),
    summary=lambda one: f"{one.kind}; {one.code}; {one.seconds} s",
    answer=answer,
    sizes={"inputs": 200, "guests": 74, "changes": 200, "seed": 1},
)


if __name__ == "__main__":
    sys.exit(PROOF.main())
