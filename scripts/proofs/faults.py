#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""End comparisons of two kernels where it hurts, and look whether anything is lost, wrong or left.

kill   SIGKILL at a random moment
write  SIGKILL at a random rename, unlink or fsync
power  SIGKILL at a random moment; then files that were written and not synced are cut, emptied or
       zeroed, and some renames whose folder was not synced are undone. SQLite's files stay as
       they are: how they survive a power cut is SQLite's business
full   a disk with little space: a message and exit code 3, or success
mix    two comparisons at once with prune, check, rm and backup
damage a bit, a cut, an exchange or an empty file in cache or store, after a comparison: the next
       ones print the same, or end with an error that names the file

After each: what was reported as stored is there, `kdelta check --repair` leaves nothing, no process
is left, and the same comparison prints what it printed on a quiet host.

    scripts/proofs/faults.py --trials 20

Needs root, for mounts, and strace. A trial works on an overlay of a cache and an empty store. One
in eight has no snapshots, images and compiled parts.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import damages
import msgspec
from campaign import BUILD, Proof, marked_processes

from kdelta.host.files import data_extents

KDELTA = Path(sys.executable).with_name("kdelta")
OLD, NEW = "deb:linux-image-cloud-amd64", "deb:linux-image-6.12-cloud-amd64"
COMPARE = ("compare", OLD, NEW, "-o", "getppid")
WARM_SECONDS, COLD_SECONDS = 8.0, 45.0
"""About how long the comparison takes, with a warm cache and with a cold one."""
PATIENCE_SECONDS = 900.0
COLD = ("snapshots", "guests", "native", "modules", "kernel-parts", "found", "headers")
"""What a cold cache lacks."""
_NOT_READ = {"console", "job", "rules", "stderr", "blobs.lock", "store.lock"}
"""Files of snapshots and locks whose content nothing reads."""
MARK = "KDELTA_DATA_DIR"
AT_WRITES = "rename,renameat,renameat2,unlink,unlinkat,fsync,fdatasync"
SYNCED = re.compile(r"f(?:data)?sync\(\d+<(?P<path>[^>]*)>\)\s+= 0")
RENAMED = re.compile(
    r'rename(?:at2?)?\((?:AT_FDCWD(?:<[^>]*>)?, )?"(?P<old>[^"]*)", '
    r'(?:AT_FDCWD(?:<[^>]*>)?, )?"(?P<new>[^"]*)".*\)\s+= 0'
)


class Trial(msgspec.Struct, frozen=True):
    """One trial. wrong: what was not as it must be; empty if all was."""

    name: str
    words: str
    wrong: tuple[str, ...]


class Place(msgspec.Struct, frozen=True):
    """Where a trial works. base: what its cache had before; upper: what it wrote to its cache."""

    folder: Path
    cache: Path
    data: Path
    base: Path
    upper: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of its commands."""
        own = {"KDELTA_CACHE_DIR": str(self.cache), "KDELTA_DATA_DIR": str(self.data)}
        return {**os.environ, **own}


@contextlib.contextmanager
def mounted(*words: str, at: Path) -> Iterator[None]:
    """Mount, and unmount at the end."""
    at.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *words, str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


@contextlib.contextmanager
def place(base: Path, *, cold: bool, size: str = "4g") -> Iterator[Place]:
    """Yield a place on a disk of its own, with the cache below `base`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        disk = folder / "disk"
        with mounted("-t", "tmpfs", "-o", f"size={size}", "tmpfs", at=disk):
            for one in ("upper", "work", "data"):
                (disk / one).mkdir()
            layers = (f"lowerdir={base}", f"upperdir={disk / 'upper'}", f"workdir={disk / 'work'}")
            cache = folder / "cache"
            with mounted("-t", "overlay", "-o", ",".join(layers), "overlay", at=cache):
                for one in COLD if cold else ():
                    shutil.rmtree(cache / one, ignore_errors=True)
                yield Place(folder, cache, disk / "data", base, disk / "upper")


def start(where: Place, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a command, the leader of its own process group."""
    return subprocess.Popen(
        [*before, str(KDELTA), *words],
        env=where.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kdelta(where: Place, *words: str) -> tuple[int, str, str]:
    """Run a command to its end; return its exit code and what it printed."""
    process = start(where, *words)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def processes(where: Place) -> list[int]:
    """Return the processes that inherited the environment of that place."""
    return marked_processes(MARK, where.data)


def after(where: Place, err: str, wanted: str) -> Iterator[str]:
    """Yield what is not as it must be after a comparison that was ended, and said `err`."""
    until = time.monotonic() + 10
    while (left := processes(where)) and time.monotonic() < until:
        time.sleep(0.1)
    if left:
        yield f"processes are left: {left}"
    if "Traceback" in err or "bug in kdelta" in err:
        yield f"a bug: {err[-500:]}"
    repair = kdelta(where, "check", "--repair")
    code, out, _ = kdelta(where, "check")
    if code or "left over" in out or "damaged" in out:
        yield f"check after a repair ({repair}): {code}: {out[-500:]}"
    reported = len(re.findall(r"^run .*: ok \(", err, re.MULTILINE))
    stored = kdelta(where, "runs", "-n", "1000")[1].count(" ok ")
    if stored < reported:
        yield f"{reported} runs were reported and {stored} are stored"
    code, out, err = kdelta(where, *COMPARE)
    if code or out != wanted:
        yield f"the comparison ({code}) prints: {out[-500:]}{err[-500:]}"


def killed(where: Place, seconds: float, *before: str) -> tuple[str, str]:
    """Run the comparison until it is killed; return how it ended and what it said."""
    process = start(where, *COMPARE, before=before)
    with contextlib.suppress(subprocess.TimeoutExpired):
        _, err = process.communicate(timeout=seconds)
        return f"ended with {process.returncode}", err
    for one in processes(where):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            if b"kdelta" in Path(f"/proc/{one}/cmdline").read_bytes().split(b"qemu-system")[0]:
                os.kill(one, signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    return f"killed after {seconds:.1f} s", err


def kill(where: Place, chance: random.Random, longest: float) -> tuple[str, str]:
    """Kill at a random moment."""
    return killed(where, chance.uniform(0.2, longest))


def write(where: Place, chance: random.Random, longest: float) -> tuple[str, str]:
    """Kill at a random change of a folder, or at an fsync."""
    at = chance.randint(1, 24)  # of one thread
    inject = f"inject={AT_WRITES}:signal=SIGKILL:when={at}"
    # With --seccomp-bpf no signal is injected.
    strace = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={AT_WRITES}")
    how, err = killed(where, 20 * longest, *strace, "-e", inject)
    return f"{how}, at change {at}", err


def power(where: Place, chance: random.Random, longest: float) -> tuple[str, str]:
    """Kill, and lose what was not synced."""
    log = where.folder / "synced"
    strace = ("strace", "-f", "--seccomp-bpf", "-qq", "-y", "-o", str(log))
    how, err = killed(where, chance.uniform(1.0, longest), *strace, "-e", f"trace={AT_WRITES}")
    return f"{how}, {lose(where, log.read_text(errors='replace'), chance)}", err


def lose(where: Place, log: str, chance: random.Random) -> str:
    """Damage what a log of strace does not show to be synced; return what was done."""
    synced: set[str] = set()
    undo: list[tuple[Path, Path]] = []
    for line in log.splitlines():
        if found := SYNCED.search(line):
            path = found["path"]
            synced.add(path)
            undo = [one for one in undo if str(one[1].parent) != path]
        elif found := RENAMED.search(line):
            old, new = found["old"], found["new"]
            moved = {one for one in synced if one == old or one.startswith(f"{old}/")}
            synced |= {new + one.removeprefix(old) for one in moved}
            undo.append((Path(old), Path(new)))
    done: Counter[str] = Counter()
    for before, now in reversed(undo):
        if now.exists() and not before.exists() and chance.random() < 0.3:
            with contextlib.suppress(OSError):
                now.rename(before)
                done["renames undone"] += 1
    for root in (where.cache, where.data):
        for path in _written(where, root):
            if str(path) in synced or path.name.startswith("store.db"):
                continue
            if (size := path.stat().st_size) and chance.random() < 0.5:
                done["files cut"] += 1
                left = chance.choice([0, chance.randrange(size)])
                os.truncate(path, left)
                if chance.random() < 0.5:
                    os.truncate(path, size)
    return ", ".join(f"{count} {what}" for what, count in sorted(done.items())) or "nothing lost"


def _written(where: Place, root: Path) -> list[Path]:
    """Return the files below a folder that the trial wrote."""
    real = where.upper if root == where.cache else root
    found = [one.relative_to(real) for one in real.rglob("*") if _is_file(one)]
    if root == where.data:
        return sorted(root / one for one in found)
    # What was only opened to be written is in the upper layer, too, with the time that it had.
    return sorted(root / one for one in found if _time(where.base / one) != _time(real / one))


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _time(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def full(where: Place, _chance: random.Random, _longest: float) -> tuple[str, str]:
    """Compare on a disk with little space, and give it more for what follows."""
    code, _, err = kdelta(where, *COMPARE)
    remount = ("mount", "-o", "remount,size=4g", str(where.data.parent))
    subprocess.run(remount, check=True)
    last = err.strip().splitlines()[-1] if err.strip() else ""
    words = f"ended with {code}: {last}"
    return words, err if code in (0, 1, 3) else f"{err}Traceback (exit code {code})"


def mix(where: Place, chance: random.Random, _longest: float) -> tuple[str, str]:
    """Compare twice at once, and meanwhile prune, check, remove and copy."""
    both = [start(where, *COMPARE), start(where, *COMPARE, "--rerun")]
    others = []
    choice = (
        ("prune", "--cache", "0"), ("check",), ("rm", "last"), ("runs",), ("check", "--repair"),
        ("backup", str(where.folder / "backup")), ("report", "last"), ("prune",),
    )  # fmt: skip
    while any(one.poll() is None for one in both):
        words = chance.choice(choice)
        shutil.rmtree(where.folder / "backup", ignore_errors=True)
        others.append((words[0], *kdelta(where, *words)))
        time.sleep(chance.uniform(0, 1))
    ended = [one.communicate(timeout=PATIENCE_SECONDS) for one in both]
    errors = [err for _, err in ended] + [err for *_, err in others]
    codes = [one.returncode for one in both]
    if any(codes):
        errors.append(f"Traceback (a comparison ended with {codes}: {ended})")
    return f"{len(others)} other commands, {codes}", "\n".join(
        re.sub(r"^run .*: ok \(.*$", "", err, flags=re.MULTILINE) for err in errors
    )


def damage(where: Place, chance: random.Random, _longest: float) -> tuple[str, str]:
    """Damage a file after a comparison; read it again, and compare again from store and cache."""
    commands = (COMPARE, ("report", "last"), COMPARE, (*COMPARE, "--rerun"))
    first, *before = (kdelta(where, *command)[1] for command in commands[:2])
    wanted = (*before, first, first)
    root = where.data if chance.random() < 0.5 else where.cache
    folder = chance.choice(sorted(one for one in root.iterdir() if _files(one)))
    path = chance.choice(_files(folder))
    words = f"{path.relative_to(root)} of {root.name}: {_damaged(path, _files(folder), chance)}"
    # What is verified as one, as a snapshot is, is named as one.
    names = [path, *(one for one in path.parents if folder in one.parents)]
    errors = []
    for command, same in zip(commands[1:], wanted, strict=True):
        code, out, err = kdelta(where, *command)
        words += f", {code}"
        if out != same if code == 0 else not any(str(one) in err for one in names):
            errors.append(f"Traceback (not named, {code}: {command} prints {out}{err})")
    return words, "\n".join(errors)


def _files(path: Path) -> list[Path]:
    """Return a file, or all below a folder, but for those that nothing reads."""
    found = path.rglob("*") if path.is_dir() else [path]
    return sorted(one for one in found if _is_file(one) and one.name not in _NOT_READ)


def _damaged(path: Path, others: Sequence[Path], chance: random.Random) -> str:
    """Damage a file, or exchange it with one of the others; return how."""
    if path.name == "ram":  # a gigabyte with holes
        with path.open("r+b") as file:
            start, end = chance.choice(list(data_extents(file.fileno())))
            at = chance.randrange(start, end)
            byte = os.pread(file.fileno(), 1, at)[0]
            os.pwrite(file.fileno(), bytes([byte ^ 1 << chance.randrange(8)]), at)
        return "bit"
    kind = chance.choice(damages.KINDS)
    other = chance.choice([one for one in others if one.name != "ram"])
    return kind if damages.damage(path, kind, other, chance) else f"{kind}, which changed nothing"


FAULTS: dict[str, Callable[[Place, random.Random, float], tuple[str, str]]] = {
    "kill": kill,
    "write": write,
    "power": power,
    "full": full,
    "mix": mix,
    "damage": damage,
}


def reference(base: Path) -> str:
    """Return what the comparison prints on a quiet host; the cache has all that it needs then."""
    with tempfile.TemporaryDirectory() as name:
        where = Place(Path(name), base, Path(name) / "data", base, base)
        code, out, err = kdelta(where, *COMPARE)
    if code:
        sys.exit(f"the comparison fails: {err}")
    return out


def made(names: Sequence[str], options: argparse.Namespace) -> Iterator[Trial]:
    """Make trials, on the cache of a comparison on a quiet host."""
    base = (options.out / "cache").resolve()
    wanted = reference(base)
    for name in names:
        fault = name.split()[0]
        chance = random.Random(name)
        cold = chance.random() < 0.125
        size = f"{int(2 ** chance.uniform(6, 19))}k" if fault == "full" else "4g"
        with place(base, cold=cold, size=size) as where:
            words, err = FAULTS[fault](where, chance, COLD_SECONDS if cold else WARM_SECONDS)
            yield Trial(name, f"{'cold, ' * cold}{words}", tuple(after(where, err, wanted)))


PROOF = Proof(
    record=Trial,
    file=BUILD / "faults/faults.jsonl",
    trials=lambda given: [f"{fault} {n}" for n in range(given.trials) for fault in FAULTS],
    make=made,
    wrong=lambda found: (f"{one.name}: {fault}" for one in found for fault in one.wrong),
    summary=lambda one: one.words,
    answer=lambda found: str(Counter(one.name.split()[0] for one in found if not one.wrong)),
    sizes={"trials": 20},
)


if __name__ == "__main__":
    sys.exit(PROOF.main())
