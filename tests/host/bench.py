# SPDX-License-Identifier: GPL-2.0-or-later
"""What it costs a command to verify what it reads: processor time of one run of it.

    python -m tests.host.bench FILE kdelta's words ...

runs a command, and writes to a file how many seconds each of the functions below took in it.
"""

import functools
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kdelta.cli.main import ended
from kdelta.host import files, manifest, sealed
from kdelta.machines import snapshots
from kdelta.store import blobs, bound

VERIFIES = (
    (manifest, "damage"),
    (sealed, "read_sealed"),
    (snapshots, "_checksums"),
    (files, "sha256_file"),
    (blobs.Blobs, "get"),
    (bound, "bound_of"),
)
"""What reads to verify. Of a blob and a sealed file, reading and unpacking are in it, too."""

_depth = threading.local()
_seconds: dict[str, float] = defaultdict(float)


def measured(words: tuple[str, ...]) -> Iterator[str]:
    """Yield lines of what verification took in a run of a command, of all its processor time."""
    with tempfile.NamedTemporaryFile() as file:
        child = (sys.executable, "-m", "tests.host.bench", file.name, *words)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        subprocess.run(child, check=True, capture_output=True)
        elapsed = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads(Path(file.name).read_bytes())
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    spent = sum(found.values())
    yield (
        f"verify: {spent:.2f} of {whole:.1f} s of processor time, {spent / whole:.2%}; the command "
        f"took {elapsed:.1f} s"
    )
    yield from (f"verify: {name}: {seconds:.2f} s" for name, seconds in sorted(found.items()))


def _timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that counts its processor time, unless another one's contains it."""

    @functools.wraps(function)
    def timed(*arguments: Any, **options: Any) -> Any:
        if getattr(_depth, "inside", False):
            return function(*arguments, **options)
        _depth.inside = True
        before = time.thread_time()
        try:
            return function(*arguments, **options)
        finally:
            _seconds[name] += time.thread_time() - before
            _depth.inside = False

    return timed


def _replace(owner: Any, name: str) -> None:
    """Replace a function where it is defined, and where modules have imported it."""
    function = getattr(owner, name)
    timed = _timed(f"{owner.__name__}.{name}", function)
    modules = [one for key, one in list(sys.modules.items()) if key.startswith("kdelta")]
    for module in (owner, *modules):
        for key, one in list(vars(module).items()):
            if one is function:
                setattr(module, key, timed)


def main() -> int:
    """Run the command that the arguments name; return its exit code."""
    for owner, name in VERIFIES:
        _replace(owner, name)
    code = ended(sys.argv[2:])
    Path(sys.argv[1]).write_text(json.dumps(_seconds))
    return code


if __name__ == "__main__":
    sys.exit(main())
