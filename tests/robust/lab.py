# SPDX-License-Identifier: GPL-2.0-or-later
"""The program as a user runs it, and what must hold whenever it has ended."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.host.dirs import cache_dir, data_dir
from kdelta.machines.arch import arch_machine
from kdelta.store.check import must_be_whole
from kdelta.store.model import Run
from kdelta.store.store import Store
from tests.machines.bench import OLD

KDELTA = str(Path(sys.executable).with_name("kdelta"))
PATIENCE_SECONDS = 200.0
"""After this a test gives up; it never asserts that something took less."""


class Ended(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    err: str


def kdelta(*words: str | Path, before: Sequence[str] = (), limit: Callable[[], None] | None = None,
           ) -> Ended:  # fmt: skip
    """Runs a command to its end. `before` are words that start it, as of unshare; `limit` is called
    in the child.
    """
    done = subprocess.run(
        [*before, KDELTA, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        preexec_fn=limit,
    )
    return checked(done.returncode, done.stdout, done.stderr)


def checked(code: int, out: str, err: str) -> Ended:
    """What holds for every end: no traceback, no bug, and no process left."""
    assert "Traceback" not in err, err
    assert "bug in kdelta" not in err, err
    assert not processes()
    return Ended(code, out, err)


def processes(name: str = "", data: Path | None = None) -> list[int]:
    """The processes of this test's commands, which all inherited the name of its data folder, that
    have `name` in their command line: a pinned QEMU is called by the name of its loader.
    """
    found = []
    mark = b"\0KDELTA_DATA_DIR=" + os.fsencode(data or data_dir()) + b"\0"
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            mine = mark in b"\0" + (entry / "environ").read_bytes()
            if mine and name.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def guests(*, resumed: bool) -> list[int]:
    """The guests of this test's commands: those that boot, or those that began at a snapshot."""
    others = processes("-incoming")
    return others if resumed else [pid for pid in processes("-accel") if pid not in others]


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Returns when it holds; fails the test if it never does."""
    end = time.monotonic() + PATIENCE_SECONDS / 2
    while not holds():
        assert time.monotonic() < end, f"never seen: {what}"
        time.sleep(0.02)


class Running:
    """A command under way, whose stderr can be read meanwhile."""

    def __init__(self, folder: Path, *words: str | Path) -> None:
        self._err = folder / f"stderr-{time.monotonic_ns()}"
        self._out = self._err.with_name(self._err.name.replace("err", "out"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen([KDELTA, *map(str, words)], stdout=out, stderr=err)

    @property
    def err(self) -> str:
        """What it said until now."""
        return self._err.read_text()

    def wait_for(self, words: str) -> None:
        """Until it says these words."""
        wait_until(lambda: words in self.err or self.process.poll() is not None, words)
        assert words in self.err, self.err

    def wait_for_guest(self, *, resumed: bool) -> None:
        """Until there is one; see `guests`. Progress reports what has ended, and not all of it."""
        wait_until(lambda: guests(resumed=resumed) or self.process.poll() is not None, "a guest")
        assert self.process.poll() is None, self.err

    def send(self, number: signal.Signals) -> None:
        """To this process only, not to those that it started."""
        self.process.send_signal(number)

    def end(self) -> Ended:
        """Waits for its end. What it started may take a moment more after a kill."""
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        wait_until(lambda: not processes(), "the end of all that it started")
        return checked(code, self._out.read_text(), self.err)

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def stored() -> list[Run]:
    """The runs in the store, the latest first; all of the store must be whole."""
    with Store.open(data_dir()) as store:
        found = store.runs()
    must_be_whole(data_dir())
    return found


def console(run: Run) -> str:
    """What the guest of a stored run printed."""
    with Store.open(data_dir()) as store:
        return store.console(run)


def shared_cache(own: Path, user: Path, *names: str) -> None:
    """Makes parts of the user's cache visible in a test's own."""
    for name in names:
        (user / name).mkdir(exist_ok=True)
        (own / name).symlink_to(user / name)


def run_words(program: Path, *options: str, kernel: str = OLD) -> list[str]:
    """The words of `kdelta run`, as a model for which a boot needs no other boot before it, and
    that other tests boot, too; and without the uncounted run that finds files, which would be
    another guest.
    """
    model = arch_machine("x86_64").board("").cpu
    return ["run", kernel, "--qemu-cpu", model, "--no-find", *options, "--", str(program)]


def snapshots() -> list[Path]:
    """The folders of snapshots in the cache."""
    return sorted(cache_dir("snapshots").glob("*"))


def regions(ended: Ended) -> object:
    """What a `run --json` counted."""
    document: Mapping[str, Mapping[str, object]] = msgspec.json.decode(ended.out)
    return document["counts"]["regions"]
