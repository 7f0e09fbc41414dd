# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls by native/kernel_mode on a kernel that has kernel mode: each case of the program of
tests/native, dynamic and static, in both ways; and that none is made so in user mode.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.guests.cpio import Entry, file
from kdelta.guests.kernel_mode import FAILED, LIBRARY, STATIC_CALL_FLAGS, direct_library
from kdelta.guests.libraries import program_files
from kdelta.host.gcc import Compiler
from kdelta.host.native import STATIC_FLAGS
from kdelta.host.target import target
from tests.kernel_mode.guest import Boot, Machine, Step, boot
from tests.native.calling import CALLING, CASES
from tests.native.calling import LIBRARY as SOURCES
from tests.native.conftest import compile_c

pytestmark = [pytest.mark.build, pytest.mark.guest, pytest.mark.slow, pytest.mark.campaign]

WAYS = ("direct", "skip")
KINDS = ("dynamic", "static")


def _entries(folder: Path) -> Iterator[Entry]:
    flags = ("-pthread", "-fexceptions")
    dynamic = compile_c(folder / "dynamic", CALLING, *flags)
    static = compile_c(
        folder / "static", [*CALLING, *SOURCES], *STATIC_FLAGS, *STATIC_CALL_FLAGS, *flags
    )
    found = {"/bin/sh": Path("/bin/sh"), "/bin/env": Path("/usr/bin/env")}
    found |= {"/dynamic": dynamic, "/static": static, LIBRARY: direct_library(Compiler("x86_64"))}
    for of in (Path("/bin/sh"), Path("/usr/bin/env"), dynamic):
        found |= {str(path): path for path in program_files(of, target("x86_64")) if path != of}
    # The unwinder, which cancelling a thread loads.
    found |= {str(path): path for path in Path("/lib/x86_64-linux-gnu").glob("libgcc_s.so.1")}
    for name, path in found.items():
        yield file(name.lstrip("/"), path.read_bytes(), executable=True)


def _step(name: str, way: str, kind: str, case: str, directory: str = "/") -> Step:
    env = (f"KDELTA_CALL={way}", f"KDELTA_CALL_CACHE=/tmp/{way}", "KDELTA_CALL_REPORT=1")
    preload = (f"LD_PRELOAD={LIBRARY}",) if kind == "dynamic" else ()
    return Step(name, ("/bin/env", *env, *preload, f"/{kind}", case), directory, seconds=120)


@pytest.fixture(scope="module")
def calls(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Boot:
    folder = tmp_path_factory.mktemp("calls")
    plan = [
        _step(f"{way}-{kind}-{case}", way, kind, case)
        for way in WAYS
        for kind in KINDS
        for case in CASES.split()
    ]
    plan += [_step(f"user-{way}-{kind}", way, kind, "six", "") for way in WAYS for kind in KINDS]
    return boot(Machine(kernel, seconds=1200), folder, _entries(folder), plan)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES.split())
def test_a_case_is_as_it_is_by_syscall(calls: Boot, way: str, kind: str, case: str) -> None:
    step = calls.steps[f"{way}-{kind}-{case}"]
    assert step.how == "exit-0", step.lines
    assert "as expected" in step.lines
    assert any(line.startswith(f"kdelta call: {way}: ") for line in step.lines), step.lines


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_in_user_mode_it_does_not_run(calls: Boot, way: str, kind: str) -> None:
    step = calls.steps[f"user-{way}-{kind}"]
    assert step.how == f"exit-{FAILED}"
    assert step.lines == (f"kdelta call: {way}: this program does not run in kernel mode",)


def test_the_kernel_stays_well(calls: Boot) -> None:
    assert calls.oopses == []
    assert calls.whole
