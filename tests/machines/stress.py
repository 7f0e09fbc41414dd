# SPDX-License-Identifier: GPL-2.0-or-later
"""What a loaded host may do to QEMU, made frequent: disturbs the QEMUs of a process until killed.

    python tests/machines/stress.py KIND SEED PID

wakes: their main loops are woken all the time. stops: all threads stop and go on. one-cpu: their
threads share one CPU of the host, now and then another one. neighbours: two busy processes a CPU.
all: all of these. Python's own generator, seeded, draws when and how long.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

KINDS = ("wakes", "stops", "one-cpu", "neighbours", "all")
_ROUND_SECONDS = 0.02
_WAKES = 20000
_LONGEST_STOP_SECONDS = 0.003


@contextlib.contextmanager
def stressed(kind: str, seed: int = 0) -> Iterator[None]:
    """Disturbs the QEMUs that this process starts, while the body runs; "none" disturbs nothing."""
    if kind == "none":
        yield
        return
    program = [sys.executable, __file__, kind, str(seed), str(os.getpid())]
    with subprocess.Popen(program) as process:
        try:
            yield
        finally:
            process.terminate()


def _qemus(parent: int) -> list[int]:
    """Those whose main loop already takes SIGALRM as an event; before, it would end them. While
    QEMU starts a thread it blocks SIGTERM, too.
    """
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            status = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines()
            )
            mask = int(status["SigBlk"], 16)
            alarm, term = (mask >> (n - 1) & 1 for n in (signal.SIGALRM, signal.SIGTERM))
            is_qemu = b"qemu-system" in (folder / "cmdline").read_bytes()  # or its loader
            if is_qemu and int(status["PPid"]) == parent and alarm and not term:
                found.append(int(folder.name))
    return found


def _wake(pid: int) -> None:
    for _ in range(_WAKES):
        os.kill(pid, signal.SIGALRM)


def _stop(pid: int, draw: random.Random) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(draw.random() * _LONGEST_STOP_SECONDS)
    finally:
        os.kill(pid, signal.SIGCONT)


def _confine(pid: int, draw: random.Random) -> None:
    cpu = draw.choice(sorted(os.sched_getaffinity(0)))
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {cpu})


def _round(kind: str, parent: int, draw: random.Random) -> None:
    for pid in _qemus(parent):
        with contextlib.suppress(OSError):
            if kind in {"wakes", "all"}:
                _wake(pid)
            if kind in {"stops", "all"}:
                _stop(pid, draw)
            if kind in {"one-cpu", "all"} and draw.random() < 0.2:
                _confine(pid, draw)


def _busy_neighbours() -> list[subprocess.Popen[bytes]]:
    program = [sys.executable, "-c", "while True: pass"]
    return [subprocess.Popen(program) for _ in range(2 * (os.cpu_count() or 1))]


def main() -> None:
    """Goes on until it is ended, or until that process is gone."""
    kind, seed, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    draw = random.Random(seed)
    neighbours = _busy_neighbours() if kind in {"neighbours", "all"} else []
    try:
        while os.getppid() == parent:
            _round(kind, parent, draw)
            if kind != "wakes":
                time.sleep(draw.random() * _ROUND_SECONDS)
    finally:
        for process in neighbours:
            process.kill()


if __name__ == "__main__":
    main()
