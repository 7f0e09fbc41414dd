# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of a bundle: linked in other orders, and what the harness in them prints."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kdelta.host.target import host_target, targets
from kdelta.measures.clock import bundle
from kdelta.measures.clock.bundle import (
    LINKER,
    WARM_ROUNDS,
    all_linked,
    compiled_file,
    linked,
    make_bundle,
)
from kdelta.spec.errors import LabError
from tests.conftest import FakeProgram
from tests.measures.clock.small_program import FUNCTIONS, PASSES, TEXT, small

pytestmark = pytest.mark.slow

native = pytest.mark.skipif(host_target() is None, reason="no host that guests could have")


def arch() -> str:
    """The host's."""
    host = host_target()
    assert host
    return host.name


def places(path: Path) -> dict[str, int]:
    """Where each symbol begins."""
    with path.open("rb") as stream:
        symbols = ELFFile(stream).get_section_by_name(".symtab")
        assert isinstance(symbols, SymbolTableSection)
        return {one.name: one["st_value"] for one in symbols.iter_symbols()}


def order(path: Path) -> tuple[str, ...]:
    """The functions in the order of their addresses."""
    found = places(path)
    return tuple(sorted(FUNCTIONS, key=found.__getitem__))


def test_links_are_orders_of_the_same_functions(tmp_path: Path) -> None:
    objects = [compiled_file("main", TEXT, tmp_path / "objects", arch=arch())]
    links = all_linked(objects, 3, tmp_path / "links")
    assert [path.name for path in links] == ["1", "2", "3"]
    assert len({order(path) for path in links}) == 3
    assert linked(objects, 1, tmp_path / "again").read_bytes() == links[0].read_bytes()
    assert order(linked(objects, 0, tmp_path / "unshuffled")) == FUNCTIONS


@native
def test_what_the_harness_prints(tmp_path: Path) -> None:
    objects = [compiled_file("main", TEXT, tmp_path / "objects", arch=arch())]
    path = linked(objects, 1, tmp_path / "link")
    argv = [str(path), "time", core(tmp_path), "1", "1", "one"]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0].startswith("clock ")
    assert lines[-1] == "done"
    rounds = np.array([line.split() for line in lines[1:-1]], dtype=float)
    assert rounds.shape == (1, 5 * PASSES)
    assert (rounds > 0).all()
    assert subprocess.run([str(path), "trace", "one"], check=False).returncode == 0
    for wrong in ("", "time 0 1", "time 0 2 1 one", f"time 0 1 {WARM_ROUNDS + 1} one"):
        assert subprocess.run([str(path), *wrong.split()], check=False).returncode == 2
    argv[2] = "100000000"
    assert subprocess.run(argv, check=False).returncode == 3


@pytest.mark.parametrize("before", [0, 2])
@native
def test_the_passes_that_are_timed_are_those_that_are_traced(before: int, tmp_path: Path) -> None:
    text = f"""
#include "start.h"
#include "timing.h"
static unsigned int passes[256], n;

static void pass(unsigned int k)
{{
    passes[n++] = k;
}}

int main(int argc, char **argv)
{{
    int code = timing_main_once(argc, argv, 4, {before}, pass);

    for (unsigned int i = 0; i < n; i++) {{
        say_number(passes[i]);
        say(" ");
    }}
    say("\\n");
    say_all();
    return code;
}}
"""
    path = linked([compiled_file("said-o", text, tmp_path, arch=arch())], 0, tmp_path / "said")

    def passes(*arguments: str) -> list[int]:
        argv = [str(path), *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.splitlines()[-1].split()]

    traced = passes("trace")
    first = 4 * before
    assert traced[-4:] == list(range(first, first + 4))
    if before:
        # One goes before a round to fill the caches: of those that were passed already.
        assert traced == list(range(12))
        assert passes("time", core(tmp_path), "1", str(before)) == [*range(8), 4, *range(8, 12)]
        assert passes("time", core(tmp_path), "1", "1") == [*range(4, 8), 4, *range(8, 12)]
    else:
        timed = passes("time", core(tmp_path), "2", "1")
        assert timed == [0, 1, 2, 3, *[3, 0, 1, 2, 3] * 2]


def core(folder: Path) -> str:
    """The core that facts names, which is one that programs may use."""
    path = folder / "facts"
    if not path.exists():
        text = (Path(bundle.__file__).parent / "facts.c").read_text()
        linked([compiled_file("facts", text, folder / "facts-o", arch=arch())], 0, path)
    said = subprocess.run([path], cwd=folder, capture_output=True, text=True, check=True).stdout
    found = re.match(r"core (\d+)\n", said)
    assert found
    return found[1]


@pytest.mark.parametrize("arch", sorted(targets()))
def test_a_bundle_for_each_architecture(arch: str, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    said: list[str] = []
    manifest = make_bundle(folder, [small()], arch=arch, processes=1, log=said.append)
    assert said == ["compiling and linking small"]
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    helpers = {"facts", "run.sh", "settings", "plan", "manifest.json"}
    assert names == {"links/small/1", "links/small/2", *helpers}
    for name in ("links/small/1", "facts"):
        with (folder / name).open("rb") as stream:
            elf = ELFFile(stream)
            assert elf["e_machine"] == targets()[arch].elf_machine
            assert not any(one["p_type"] == "PT_INTERP" for one in elf.iter_segments())
    assert [len(one.sha256) for one in manifest.programs] == [2]


def test_without_a_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match=f"the program {LINKER} is missing"):
        linked([], 1, tmp_path / "link")


def test_a_linker_that_refuses(tmp_path: Path, fake_program: FakeProgram) -> None:
    fake_program(LINKER, "#!/bin/sh\necho 'error: cannot shuffle' >&2; exit 1\n")
    with pytest.raises(LabError, match=r"ld\.lld failed: error: cannot shuffle"):
        linked([], 1, tmp_path / "link")
