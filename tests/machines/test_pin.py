# SPDX-License-Identifier: GPL-2.0-or-later
"""The pin is fetched from the mirror, and needs nothing of QEMU's on the host."""

import contextlib
import glob
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import kdelta
from kdelta.host.pin import pinned
from tests.machines.bench import ARM, ARM64, OLD
from tests.robust.lab import kdelta as kdelta_ended

pytestmark = [pytest.mark.guest, pytest.mark.network, pytest.mark.slow]
OTHER_USER = 65534
_OF_QEMU = (
    "/usr/bin/qemu-system-*",
    "/usr/lib/*/qemu",
    "/usr/lib/ipxe/qemu",
    "/usr/share/qemu",
    "/usr/share/seabios",
)


@pytest.mark.parametrize("spec", [OLD, ARM, ARM64])
def test_pin_boots_where_the_host_has_no_qemu(spec: str, tmp_path: Path) -> None:
    """No program, firmware or module of the host's is there, and none is missed."""
    hidden = [one for pattern in _OF_QEMU for one in glob.glob(pattern)]  # noqa: PTH207
    script = tmp_path / "hide"
    script.write_text(
        "set -e\n"
        + "".join(
            f"mount {'-t tmpfs tmpfs' if Path(one).is_dir() else '--bind /dev/null'} {one}\n"
            for one in hidden
        )
        + 'exec "$@"\n'
    )
    before = ["unshare", "-m", "sh", str(script)]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("the host's QEMU can only be hidden as root")
    words = ("profile", spec, "-w", "syscalls", "-o", "getppid", "--no-snapshot", "--json")
    ended = kdelta_ended(*words, before=before)
    assert ended.code == 0, ended.err
    assert _qemu(ended.out) == pinned().title


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of that user. Not below pytest's folder, which is root's alone."""
    if os.geteuid():
        pytest.skip("only root can run a program as another user; the other tests run as this one")
    with tempfile.TemporaryDirectory(prefix="kdelta-home-") as name:
        os.chown(name, OTHER_USER, OTHER_USER)
        yield Path(name)


@pytest.mark.campaign
def test_other_user_than_root_fetches_the_pin_and_runs(home: Path) -> None:
    """With a home of its own: packages, pin, snapshot and store are all made there."""
    python = next((one for one in (sys.executable, "/usr/bin/python3") if _can_use(one, home)), "")
    if not python:
        pytest.skip("another user can run no Python that has what kdelta needs")
    words = ("profile", OLD, "-w", "syscalls", "-o", "getppid", "--json")
    runs = [_as_other(home, python, "-m", "kdelta", *words, *one) for one in ((), ("--rerun",))]
    assert [(one.returncode, "Traceback" in one.stderr) for one in runs] == [(0, False)] * 2, runs[
        0
    ].stderr
    assert f"fetching the pin {pinned().digest}" in runs[0].stderr
    assert "fetching" not in runs[1].stderr
    assert (home / ".cache/kdelta/qemu" / pinned().digest).stat().st_uid == OTHER_USER
    shown = _as_other(home, python, "-m", "kdelta", "show", "--json")
    assert _qemu(shown.stdout) == pinned().title


def _qemu(shown: str) -> str:
    return str(msgspec.json.decode(shown)["run"]["run"]["machine"]["qemu"])


def _as_other(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    packages = Path(kdelta.__file__).parents[1], Path(sysconfig.get_path("purelib"))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        words, env=environment, cwd=home, user=OTHER_USER, group=OTHER_USER, extra_groups=(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def _can_use(python: str, home: Path) -> bool:
    """Whether that user can start this Python with kdelta."""
    with contextlib.suppress(OSError):
        return _as_other(home, python, "-c", "import kdelta.cli.main").returncode == 0
    return False
