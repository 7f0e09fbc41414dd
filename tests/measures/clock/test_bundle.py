# SPDX-License-Identifier: GPL-2.0-or-later
"""A bundle that is compiled and run on this host."""

import hashlib
import os
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from kdelta.host.gcc import Compiler
from kdelta.host.native import native_folder
from kdelta.host.target import target
from kdelta.measures.clock.boots import paired
from kdelta.measures.clock.bundle import build_bundle, bundle_of, bundle_of_program, write_bundle
from kdelta.measures.clock.guests import initramfs_of
from kdelta.measures.clock.results import parse_run, read_run
from kdelta.spec.errors import UserError
from kdelta.workloads.catalog import find_workload

HERE = Compiler(next(name for name in ("x86_64", "arm64") if target(name).is_host))


def unpacked(archive: Path, folder: Path) -> None:
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    packed = bundle_of(find_workload("syscalls"), HERE, strict=True)
    size = write_bundle(packed, HERE.arch, folder / "bundle.tar")
    assert size < 2_000_000
    with tarfile.open(folder / "bundle.tar") as tar:
        assert tar.getnames() == ["bundle", "README"]
    unpacked(folder / "bundle.tar", folder)
    return folder / "bundle"


def ran(bundle: Path, *words: str) -> bytes:
    return subprocess.run([bundle, "run", *words], check=True, capture_output=True).stdout


@pytest.mark.long
def test_operations_are_timed(bundle: Path) -> None:
    found = parse_run(ran(bundle, "getppid", "pipe-round-trip", "page-fault"), "1")
    assert list(found.ns) == ["getppid", "pipe-round-trip", "page-fault"]
    # What takes two task switches and four calls takes longer than one call, on any host.
    assert 1 < found.ns["getppid"] < found.ns["pipe-round-trip"]
    # Of 512 pages each iteration faults: they are unmapped again while nothing is timed.
    assert found.ns["page-fault"] > 50
    assert found.facts.workload == "syscalls"
    assert found.facts.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    again = parse_run(ran(bundle, "getppid"), "2")
    assert again.facts.bundle == found.facts.bundle
    assert again.facts.build_id == found.facts.build_id


@pytest.mark.long
def test_an_operation_that_there_is_not(bundle: Path) -> None:
    done = subprocess.run([bundle, "run", "gitpid"], check=False, capture_output=True)
    assert done.returncode == 1
    assert b"an operation that it does not know" in done.stderr
    with pytest.raises(UserError, match="the program failed with exit code 2"):
        parse_run(done.stdout, "1")


@pytest.mark.long
def test_operations_are_listed(bundle: Path) -> None:
    listed = subprocess.run([bundle, "list"], check=True, capture_output=True, text=True).stdout
    assert {"getppid", "open-close"} <= set(listed.splitlines())


@pytest.mark.parametrize("name", ["nat", "kbuild", "wisconsin-mariadb"])
def test_what_needs_more_than_a_kernel_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} cannot be packed: it "):
        build_bundle(find_workload(name), HERE)


@pytest.mark.long
def test_runs_share_no_files_and_leave_none(bundle: Path, tmp_path: Path) -> None:
    """What another user has put there is not written to, and stops no run."""
    victim, place = tmp_path / "victim", tmp_path / "there"
    victim.write_text("mine")
    place.mkdir()
    (place / "file").symlink_to(victim)
    (tmp_path / "kdelta-syscalls").symlink_to(place)
    before = sorted(tmp_path.iterdir())
    words: list[str | Path] = [bundle, "run", "open-close"]
    environment = {"TMPDIR": str(tmp_path)}
    with (
        subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as one,
        subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as other,
    ):
        for run in (one, other):
            assert parse_run(run.communicate()[0], "1").ns["open-close"] > 0
    assert sorted(tmp_path.iterdir()) == before
    assert victim.read_text() == "mine"
    nowhere = {"TMPDIR": str(tmp_path / "nowhere")}
    done = subprocess.run(words, check=False, capture_output=True, env=nowhere)
    assert done.returncode == 1
    assert b"nowhere: No such file or directory" in done.stderr


@pytest.mark.long
def test_any_program_is_one_region(bundle: Path) -> None:
    done = subprocess.run(
        [bundle, "exec", "/bin/sh", "-c", "sleep 0.02; echo printed"],
        check=True,
        capture_output=True,
    )
    found = parse_run(done.stdout, "1")
    assert found.ns["command"] >= 20_000_000
    assert (found.facts.workload, done.stderr) == ("sh", b"printed\n")
    assert sum(found.used["command"]) < found.ns["command"]  # sleeping takes no processor time
    other = subprocess.run([bundle, "exec", "/bin/true"], check=True, capture_output=True).stdout
    assert parse_run(other, "2").facts.bundle != found.facts.bundle


@pytest.mark.long
def test_program_with_a_region_of_the_name_of_the_whole_is_refused(bundle: Path) -> None:
    line = '{"region":"command","iterations":1,"ticks":9,"ns":9,"overhead_ticks":0,"samples":[]}'
    shell = f"echo '{line}' >&$KDELTA_TIMED_FD"
    argv = [str(bundle), "exec", "/bin/sh", "-c", shell]
    done = subprocess.run(argv, check=False, capture_output=True)
    assert done.returncode != 0
    assert b'has a region "command", which is kdelta\'s own' in done.stderr
    shell = shell.replace('"command"', '"commands"')
    assert subprocess.run([*argv[:-1], shell], check=False, capture_output=True).returncode == 0


@pytest.mark.long
def test_program_with_other_arguments_is_something_else(bundle: Path, tmp_path: Path) -> None:
    for at, words in enumerate((["a b"], ["a", "b"])):
        with (tmp_path / f"{at}.json").open("wb") as file:
            subprocess.run([bundle, "exec", "/bin/true", *words], check=True, stdout=file)
    with pytest.raises(UserError, match="is from other arguments of the program than"):
        paired(*([read_run(tmp_path / f"{at}.json")] for at in (0, 1)))


@pytest.mark.long
def test_program_that_is_not_there_is_named(bundle: Path) -> None:
    done = subprocess.run([bundle, "exec", "/no/program"], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (
        1,
        b"bundle: /no/program: No such file or directory\n",
    )
    with pytest.raises(UserError, match="the program failed"):
        parse_run(done.stdout, "1")


@pytest.mark.long
def test_child_that_goes_on_holds_no_program_up(bundle: Path) -> None:
    begun = time.monotonic()
    done = subprocess.run(
        [bundle, "exec", "/bin/sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!"],
        check=True,
        capture_output=True,
        timeout=20,
    )
    os.kill(int(done.stderr), signal.SIGKILL)
    assert parse_run(done.stdout, "1").ns["command"] < 20e9
    assert time.monotonic() - begun < 20


def built_with_marks(folder: Path) -> Path:
    """Return a program with a region of each name that it is called with."""
    source, program = folder / "own.c", folder / "own"
    source.write_text("""
        #include "kdelta.h"
        int main(int argc, char **argv)
        {
            for (int i = 1; i < argc; i++)
                kdelta_begin(argv[i]), kdelta_end();
            return 0;
        }
    """)
    include = f"-I{native_folder() / 'include'}"
    words = ["-static", "-DKDELTA_TIMED", include, str(source), "-o", str(program)]
    subprocess.run(["gcc", *words], check=True)
    return program


@pytest.mark.long
@pytest.mark.slow
def test_program_of_the_user_is_packed(tmp_path: Path) -> None:
    program = built_with_marks(tmp_path)
    write_bundle(bundle_of_program(program, HERE), HERE.arch, tmp_path / "own.tar")
    there = tmp_path / "there"
    there.mkdir()
    unpacked(tmp_path / "own.tar", there)
    assert "./bundle exec ./own >A/1.json" in (there / "README").read_text()
    for regions, found in ((["a", "b"], {"a", "b", "command"}), ([], {"command"})):
        done = subprocess.run(
            ["./bundle", "exec", "./own", *regions], cwd=there, check=True, capture_output=True
        )
        assert set(parse_run(done.stdout, "1").ns) == found


@pytest.mark.long
def test_marks_are_heard_whatever_files_are_open(bundle: Path, tmp_path: Path) -> None:
    """The pipe that a program writes to may have its number already."""
    program = built_with_marks(tmp_path)
    for most in range(3, 9):
        opened = "; ".join(f"exec {fd}</dev/null" for fd in range(3, most + 1))
        done = subprocess.run(
            ["/bin/sh", "-c", f'{opened}; exec "$0" exec "$1" a', bundle, program],
            check=True,
            capture_output=True,
        )
        assert set(parse_run(done.stdout, "1").ns) == {"a", "command"}


@pytest.mark.parametrize(
    ("program", "arch", "words"),
    [
        ("/bin/sh", HERE.arch, "sh is no static program"),
        ("/bin/sh", "riscv64", f"sh is a program for {HERE.arch}, and the bundle is for riscv64"),
        ("/no/program", HERE.arch, "no such program: /no/program"),
        ("/etc/passwd", HERE.arch, "passwd is not executable"),
    ],
)
def test_what_is_no_static_program_is_not_packed(program: str, arch: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        bundle_of_program(Path(program), Compiler(arch))


@pytest.mark.slow
def test_the_initramfs_is_named_by_its_content(own_cache: Path) -> None:
    path = initramfs_of(b"a job", HERE)
    assert path.is_relative_to(own_cache)
    assert path.stem == f"clock-{hashlib.sha256(path.read_bytes()).hexdigest()[:32]}"
    assert b"a job" in path.read_bytes()
    path.write_bytes(b"damaged")
    assert initramfs_of(b"a job", HERE).read_bytes() != b"damaged"
