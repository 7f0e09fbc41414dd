# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps each test to what its marks allow, so that `make test` and `make test-fast` stay true.

While a test without a mark runs, the programs that need the mark are replaced on the PATH: they
record that they were started, and fail. This reaches programs that a test's kdelta starts, too.
"""

import os
import shlex
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

PROGRAMS: Mapping[str, Sequence[str]] = {
    "guest": (
        "qemu-system-x86_64",
        "qemu-system-arm",
        "qemu-system-aarch64",
        "qemu-system-riscv64",
        "env",  # starts a QEMU of unpacked packages
    ),
    "network": ("apt-get",),
    "outside": (
        "callgrind_annotate",
        "chromium",
        "cpio",
        "fish",
        "gdb",
        "groff",
        "lexgrog",
        "node",
        "zsh",
    ),
}
_granted: set[str] = set()
# The kernel that a guest boots may have to be fetched.
IMPLIED = {"guest": {"network"}}

# Questions about QEMU itself boot nothing: they pass.
_STAND_IN = """\
#!/bin/sh
case "{name} $*" in
*qemu-system-*--version|*qemu-system-*"-machine none"*|*qemu-system-*,dumpdtb=*) exec {real} "$@" ;;
*qemu-system-*) ;;
"env "*) exec {real} "$@" ;;
esac
echo {name} "$@" >>{record}
echo {name}: this test is not marked {mark} >&2
exit 97
"""


class Marks:
    """The stand-ins, in one folder a mark."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._record = folder / "record"
        self._path = os.environ["PATH"]
        for mark, names in PROGRAMS.items():
            (folder / mark).mkdir()
            for name in filter(shutil.which, names):
                words = {"real": shutil.which(name), "name": name, "record": self._record}
                quoted = {key: shlex.quote(str(word)) for key, word in words.items()}
                path = folder / mark / name
                path.write_text(_STAND_IN.format(mark=mark, **quoted))
                path.chmod(0o755)

    def start(self, marks: Collection[str]) -> None:
        """Hides the programs that a test with these marks may not use."""
        _granted.clear()
        _granted.update(marks, *(IMPLIED.get(mark, ()) for mark in marks))
        hidden = [str(self._folder / mark) for mark in PROGRAMS if mark not in _granted]
        os.environ["PATH"] = os.pathsep.join([*hidden, self._path])

    def stop(self) -> list[str]:
        """Restores the PATH; returns the commands that the test had no mark for."""
        os.environ["PATH"] = self._path
        if not self._record.exists():
            return []
        found = self._record.read_text().splitlines()
        self._record.unlink()
        return found


MARKS = pytest.StashKey[Marks]()


def require(mark: str) -> None:
    """Fails a test that lacks the mark, for what is not found by the PATH."""
    if mark not in _granted:
        pytest.fail(f"this test is not marked {mark}")
