# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a command of this checkout and of another one in turns, and compares what they take."""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tests.machines.bench_qemu import children_seconds

HERE = Path(__file__).resolve().parents[1]
BEFORE = "ece493e"
"""The commit that figures are compared with, unless another one is named."""


_TIMED = """
import sys, time
from kdelta.cli.main import ended
code = ended(sys.argv[1:])
print(time.process_time(), file=sys.stderr)
sys.exit(code)
"""


class Took(msgspec.Struct, frozen=True):
    """What one command took, in seconds.

    wall       by the clock
    processor  of processors, with what it started
    own        of processors, without that: without QEMU
    """

    wall: float
    processor: float
    own: float


@contextlib.contextmanager
def checkout(name: str) -> Iterator[Path]:
    """Gives the checkout of that folder, or a work tree of that commit, which goes afterwards."""
    if Path(name).is_dir():
        yield Path(name)
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), name], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def took(tree: Path, data: Path, words: Sequence[str]) -> Took:
    """What `kdelta WORDS` takes in a checkout, with that folder for its store."""
    known = {**os.environ, "PYTHONPATH": str(tree / "src"), "KDELTA_DATA_DIR": str(data)}
    if "--rerun" not in (tree / "src/kdelta/cli/words.json").read_text():  # its name of before
        words = ["--again" if word == "--rerun" else word for word in words]
    before, started = children_seconds(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _TIMED, *words],
        check=False, cwd=data, env=known, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"kdelta {' '.join(words)} of {tree} failed: {done.stderr[-1000:]}")
    wall, processor = time.perf_counter() - started, children_seconds() - before
    return Took(wall, processor, float(done.stderr.splitlines()[-1]))


def own_seconds_a_run(other: str, kernel: str, more: int) -> str:
    """What kdelta itself takes here and there for one more run of an operation from a snapshot."""
    words = ["compare", kernel, kernel, "-o", "getppid", "-j", "1", "--rerun", "--perturb"]
    with checkout(other) as there, tempfile.TemporaryDirectory() as folder:
        found = []
        for tree in (HERE, there):
            took(tree, Path(folder), [*words, "1"])
            few, many = (took(tree, Path(folder), [*words, str(n)]).own for n in (1, 1 + more))
            found.append((many - few) / (2 * more))
    here, before = found
    return f"{here:.3f} s; {other}: {before:.3f} s; ratio {here / before:.2f} ({2 * more} runs)"


def compared(other: str, words: Sequence[str], rounds: int) -> str:
    """Medians over the rounds of what a command takes here, with the ratio to what it takes there.

    Each has a store of its own. It is run once before the rounds, so that kernels, native parts,
    snapshots and, without --rerun, runs are there.
    """
    with checkout(other) as there, tempfile.TemporaryDirectory() as folder:
        trees = {"here": HERE, "there": there}
        found: dict[str, list[Took]] = {name: [] for name in trees}
        for round_number in range(rounds + 1):
            for name, tree in trees.items():
                data = Path(folder) / name
                data.mkdir(exist_ok=True)
                one = took(tree, data, words)
                if round_number:
                    found[name].append(one)
    wall = {name: statistics.median(one.wall for one in each) for name, each in found.items()}
    used = {name: statistics.median(one.processor for one in each) for name, each in found.items()}
    return (
        f"{wall['here']:.1f} s, {used['here']:.1f} s of processor time; {other}: "
        f"{wall['there']:.1f} s, {used['there']:.1f} s; ratios "
        f"{wall['here'] / wall['there']:.2f} and {used['here'] / used['there']:.2f}"
        f" ({rounds} rounds, in turns)"
    )


@contextlib.contextmanager
def busy_host() -> Iterator[None]:
    """All cores loaded by other work."""
    argv = [sys.executable, "-c", "while True: pass"]
    load = [subprocess.Popen(argv) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in load:
            process.kill()
            process.wait()
