# SPDX-License-Identifier: GPL-2.0-or-later
"""A stripped program's functions have names where a debuginfod server has its symbols."""

import functools
import http.server
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kdelta.counts import debuginfod
from kdelta.counts.binaries import load_binary
from kdelta.counts.debuginfod import stripped_build_id, symbol_files
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.plan import RunPlan
from kdelta.lab.program import program_work
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command

SOURCE = """
static volatile int sum;
__attribute__((noinline)) static void hot(int n) { for (int i = 0; i < n; i++) sum += i; }
int main(void) { hot(2000); return 0; }
"""
KERNEL = Kernel(identity="1", spec="image:/x", image="/x", arch="x86_64", release="6.12.0")


class Served(NamedTuple):
    """A stripped program, a server's address, and the file that it has of the program."""

    program: Path
    url: str
    file: Path
    asked: list[str]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    # Guests and kernels are in the usual cache.
    monkeypatch.setattr("kdelta.counts.debuginfod.cache_dir", lambda _: tmp_path)
    debuginfod._asked.cache_clear()
    debuginfod._deadline.cache_clear()
    program, debug = tmp_path / "bench", tmp_path / "bench.debug"
    (tmp_path / "bench.c").write_text(SOURCE)
    build = ["gcc", "-g", "-O1", "-Wl,--build-id", "-o", str(program), str(tmp_path / "bench.c")]
    for command in (
        build,
        ["objcopy", "--only-keep-debug", str(program), str(debug)],
        ["strip", str(program)],
    ):
        subprocess.run(command, check=True)
    build_id = stripped_build_id(program.read_bytes())
    file = tmp_path / "served" / "buildid" / build_id / "debuginfo"
    file.parent.mkdir(parents=True)
    debug.rename(file)
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            asked.append(self.path)

    handler = functools.partial(Handler, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("DEBUGINFOD_URLS", url)
        yield Served(program, url, file, asked)
        server.shutdown()


def planned(served: Served) -> RunPlan:
    return program_work(Program((str(served.program),)), KERNEL, LabRequest())


def names(plan: RunPlan) -> set[str]:
    found = load_binary("bench", plan.binaries["bench"], plan.symbol_files.get("bench", b""))
    assert found
    return {name for _, _, name in found.symbols}


def test_symbols_come_from_the_server_once(served: Served) -> None:
    plan = planned(served)
    assert {"hot", "main"} <= names(plan)
    assert plan.warnings == ()
    mine = [path for path in served.asked if served.file.parent.name in path]
    assert len(mine) == 1
    debuginfod._asked.cache_clear()
    assert "hot" in names(planned(served))  # from the cache
    assert len([path for path in served.asked if served.file.parent.name in path]) == 1


def test_nothing_is_asked_without_the_variable(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_symbols = planned(served).identity
    served.asked.clear()
    monkeypatch.delenv("DEBUGINFOD_URLS")
    plan = planned(served)
    assert (served.asked, plan.symbol_files, plan.warnings) == ([], {}, ())
    assert "hot" not in names(plan)
    assert plan.identity != with_symbols  # its runs are others: they have other names


def test_what_no_server_has_is_no_warning(served: Served) -> None:
    served.file.unlink()
    plan = planned(served)
    assert (plan.symbol_files, plan.warnings) == ({}, ())
    assert served.asked


@pytest.mark.parametrize("content", [b"", b"<html>", b"\x7fELF\x02\x01\x01"])
def test_what_is_no_debug_file_is_one_warning(served: Served, content: bytes) -> None:
    served.file.write_bytes(content)
    plan = planned(served)
    assert plan.symbol_files == {}
    (warning,) = plan.warnings
    assert warning.startswith(f"no symbols by DEBUGINFOD_URLS of bench: {served.url}: ")


def test_a_server_that_is_not_there_is_one_warning(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBUGINFOD_URLS", "ima:enforcing http://127.0.0.1:1/ ")
    plan = planned(served)
    (warning,) = plan.warnings
    assert warning.startswith("no symbols by DEBUGINFOD_URLS of ")
    assert "http://127.0.0.1:1: " in warning
    assert " more)" in warning  # of the libraries


def test_the_next_server_is_asked(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:1 {served.url}")
    found, _ = symbol_files({"bench": served.program.read_bytes()})
    assert list(found) == ["bench"]


def test_no_time_left_is_a_warning(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.counts.debuginfod.DEBUG_FILES_SECONDS", 0)
    found, (warning,) = symbol_files({"bench": served.program.read_bytes()})
    assert found == {}
    assert "more than 0 seconds" in warning


def test_what_has_symbols_or_is_no_program_is_not_asked_for(served: Served) -> None:
    assert stripped_build_id(b"#!/bin/sh") == ""
    assert stripped_build_id(served.file.read_bytes()) == ""  # it has a symbol table


@pytest.mark.guest
@pytest.mark.slow
def test_functions_of_a_run_have_names(served: Served, tmp_path: Path) -> None:
    import asyncio

    from tests.machines.bench import OLD

    program = Program((str(served.program),))
    request = RunRequest(kernel=OLD, program=program, lab=LabRequest(perturbations=1))
    with Store.open(tmp_path / "store") as store:
        (done,) = asyncio.run(run_command(request, Lab(store, Silent())))
    assert done.run.status is RunStatus.OK
    assert done.counts
    functions = {one.name: one.cost.insns for one in done.counts.regions[0].functions}
    assert functions["hot"] > 2000
