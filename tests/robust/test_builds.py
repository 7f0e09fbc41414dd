# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds that are interrupted, killed, wanted twice, or short of space: the next one is none the
worse for it.
"""

import signal
import subprocess
from pathlib import Path

import pytest

from kdelta.host.dirs import cache_dir
from kdelta.kernels.kbuild.built import built_kernels
from tests.conftest import FakeProgram, wait_for
from tests.kernels.trees import compiled, fake_tree, kernel
from tests.robust.conftest import SmallDisk
from tests.robust.lab import Ended, Running, kdelta, wait_until

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("own_cache")]

SLOW = "+CONFIG_SLOW=y"
LAB_FAILED = 3

# Only what kbuild asks it to compile takes long, or goes wrong.
GCC = """#!/bin/sh
case " $* " in *" -c "*{source}*) {what};; esac
exec /usr/bin/gcc "$@"
"""
# Writes half an object, as a compiler does that is killed, and says so.
HALF = """if [ ! -e {done} ]; then
    while [ $# -gt 1 ]; do [ "$1" = -o ] && printf half >"$2"; shift; done
    : >{done}; sleep 300; exit 1
fi"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return fake_tree(tmp_path)


def _logs() -> str:
    return "".join(path.read_text() for path in sorted(cache_dir("logs").glob("build-*.log")))


def _ended(tree: Path, folder: Path, number: signal.Signals) -> Ended:
    """A build that is ended in its middle."""
    with Running(folder, "build", tree, SLOW) as running:
        wait_until(lambda: "kernel/slow.o" in _logs(), "a file that takes long")
        running.send(number)
        return running.end()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_build_goes_on_where_it_was(
    tree: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    assert _ended(tree, tmp_path, number).code == code
    assert built_kernels() == []
    _, built = kernel(tree)
    assert compiled(built) == ["mm/pages.o"], "all others were compiled before"


@pytest.mark.slow
def test_a_killed_build_leaves_no_process_and_no_half_object(
    tree: Path, tmp_path: Path, fake_program: FakeProgram
) -> None:
    good, _ = kernel(tree)
    done = tmp_path / "done"
    fake_program("gcc", GCC.format(source="core.c", what=HALF.format(done=done)))
    # -O1 compiles all again; what it has not come to stands from the kernel before.
    with Running(tmp_path, "build", tree, "+KCFLAGS=-O1") as running:
        wait_until(done.exists, "a half object")
        running.send(signal.SIGKILL)
        assert running.end().code == -signal.SIGKILL
    Path(good.image).unlink()
    again, _ = kernel(tree)
    assert again == good
    assert Path(again.image).stat().st_size > 0


@pytest.mark.slow
def test_two_that_want_the_same_kernel(
    tree: Path, tmp_path: Path, fake_program: FakeProgram
) -> None:
    go = tmp_path / "go"
    fake_program("gcc", GCC.format(source="pages.c", what=wait_for(go)))
    with Running(tmp_path, "build", tree) as one:
        wait_until(lambda: "mm/pages.o" in _logs(), "the first build")
        with Running(tmp_path, "build", tree) as two:
            two.wait_for("waiting for another kdelta")
            go.touch()
            codes = one.process.wait(), two.process.wait()
            ended = one.end(), two.end()
    assert codes == (0, 0)
    said = [line for each in ended for line in each.err.splitlines()]
    assert len([line for line in said if line.startswith("building ")]) == 1
    assert ended[0].out == ended[1].out
    assert len(built_kernels()) == 1


@pytest.mark.slow
def test_a_killed_builder_lets_the_next_one_build(
    tree: Path, tmp_path: Path, fake_program: FakeProgram
) -> None:
    go = tmp_path / "go"
    fake_program("gcc", GCC.format(source="pages.c", what=wait_for(go)))
    with Running(tmp_path, "build", tree) as one:
        wait_until(lambda: "mm/pages.o" in _logs(), "the first build")
        with Running(tmp_path, "build", tree) as two:
            two.wait_for("waiting for another kdelta")
            one.send(signal.SIGKILL)
            one.process.wait()
            go.touch()
            assert two.end().code == 0
    assert len(built_kernels()) == 1


@pytest.mark.slow
def test_a_disk_that_fills_up(
    tree: Path, small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever that happens: it is reported as what it is, and what is there by then does no
    harm.
    """
    cache = small_disk("64k")
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(cache))
    failures = 0
    for size in (64, 128, 192, 256, 320, 400, 500, 650, 800, 4096):
        argv = ["mount", "-o", f"remount,size={size}k", str(cache)]
        subprocess.run(argv, check=True)
        ended = kdelta("build", tree)
        if ended.code == 0:
            break
        assert ended.code == LAB_FAILED, ended.err
        assert "No space left" in ended.err
        assert "KDELTA_CACHE_DIR" in ended.err
        failures += 1
    assert ended.code == 0
    assert failures >= 3
    _, built = kernel(tree)
    assert built.release == "6.12.99"


@pytest.mark.slow
def test_what_verbose_shows_can_be_pasted(tree: Path) -> None:
    """It does in the output folder what kdelta does there."""
    ended = kdelta("build", "-v", tree)
    assert ended.code == 0
    lines = [line for line in ended.err.splitlines() if line.startswith("+ (cd ")]
    (command,) = [line.removeprefix("+ ") for line in lines if line.endswith(" vmlinux modules)")]
    out = next(cache_dir("trees").glob("*/out-x86"))
    image = (out / "vmlinux").read_bytes()
    for path in (*out.glob("*/*.o"), *out.glob("*/*.state"), out / "vmlinux"):
        path.unlink()
    environment = {"PATH": "/usr/bin:/bin", "KCFLAGS": "", "KBUILD_BUILD_USER": "me"}
    subprocess.run(["sh", "-c", command], check=True, env=environment, capture_output=True)
    assert (out / "vmlinux").read_bytes() == image
