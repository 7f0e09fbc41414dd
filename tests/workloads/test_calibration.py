# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of the calibration: generated always the same, linked in other orders, and what the
harness in them prints.
"""

import re
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kdelta.host.target import host_target, targets
from kdelta.spec.errors import LabError
from kdelta.workloads.calibration.bundle import (
    LINKER,
    all_linked,
    compiled,
    compiled_file,
    footprint_bytes,
    linked,
    make_bundle,
)
from kdelta.workloads.calibration.generate import (
    BEFORE,
    PASSES,
    QUICK_RELINKS,
    WIDTH,
    GeneratedCode,
    ProgramSource,
    Use,
    bodies_of,
    program,
    programs,
    source_of,
)
from tests.conftest import FakeProgram

pytestmark = pytest.mark.slow

native = pytest.mark.skipif(host_target() is None, reason="no host that guests could have")


def arch() -> str:
    """The host's."""
    host = host_target()
    assert host
    return host.name


def small(**changed: object) -> ProgramSource:
    code = msgspec.structs.replace(GeneratedCode("small", 12, 4, copies=2), **changed)
    return program(code, Use("random", "random"), (bodies_of(code), source_of(code)), 3)


def all_spans(path: Path) -> dict[str, tuple[int, int]]:
    """Where each symbol begins, and how many bytes it has."""
    with path.open("rb") as stream:
        symbols = ELFFile(stream).get_section_by_name(".symtab")
        assert isinstance(symbols, SymbolTableSection)
        return {one.name: (one["st_value"], one["st_size"]) for one in symbols.iter_symbols()}


def spans(path: Path) -> dict[str, tuple[int, int]]:
    """The same of the generated functions."""
    every = all_spans(path).items()
    return {name: span for name, span in every if re.fullmatch(r"copy\d+_f\d+", name)}


def functions(path: Path) -> dict[str, int]:
    """The addresses of the generated functions."""
    return {name: begin for name, (begin, _) in spans(path).items()}


def windows(path: Path, size: int) -> int:
    """How many aligned windows of so many bytes the generated functions lie in, one by one."""
    return sum(
        (begin + length - 1) // size - begin // size + 1 for begin, length in spans(path).values()
    )


def test_the_set_is_always_the_same_and_has_what_is_needed() -> None:
    first, again = list(programs()), list(programs())
    assert first == again
    assert len({one.name for one in first}) == len(first)
    assert {one.flow for one in first} == {"fixed", "random", "mixed", "loop"}
    for one in first:
        assert 1 <= one.relinks <= 30
        others = [other for other in first if other.code == one.code]
        assert {other.c_source for other in others} == {one.c_source}
    quick = list(programs(quick=True))
    assert {one.name for one in quick} < {one.name for one in first}
    assert max(one.relinks for one in quick) == QUICK_RELINKS


def test_copies_of_bodies_make_up_the_functions() -> None:
    code = GeneratedCode("small", 12, 4, copies=3)
    assert bodies_of(code).count("noinline") == 4
    source = source_of(code)
    for copy in range(3):
        for number in range(4):
            assert f"function copy{copy}_f{number};" in source


@pytest.mark.slow
@pytest.mark.parametrize("call", ["pointer", "tree", "chain"])
@pytest.mark.parametrize("data", ["none", "load", "chase", "store"])
@native
def test_every_kind_is_compiled_linked_and_runs(call: str, data: str, tmp_path: Path) -> None:
    host = host_target()
    assert host
    source = small(call=call, data=data, conditionals=1, loop=4)
    objects = compiled(source, tmp_path / "objects", arch=host.name)
    path = linked(objects, 1, tmp_path / "link")
    for arguments in (("fixed", "constant"), ("random", "random"), ("loop", "strided")):
        assert subprocess.run([path, "trace", *arguments, "4096"], check=False).returncode == 0
    for wrong in ("", "trace", "trace fixed random 5000", "time 0 1"):
        assert subprocess.run([path, *wrong.split()], check=False).returncode == 2


@native
def test_code_that_waits_for_what_is_fetched(tmp_path: Path) -> None:
    code = GeneratedCode("wide", 60, 40, copies=2, call="chain", wide=True)
    bodies = bodies_of(code)
    assert "NEXT_WORD" not in source_of(code)
    for body in bodies.split("__attribute__")[1:]:
        written = re.findall(r"ADD\((\w), ", body)
        assert len(written) == 40
        # Each operation reads what it writes, a constant and `s`: it waits for none of the last.
        assert all(len(set(written[at : at + WIDTH])) == WIDTH for at in range(40 - WIDTH))
        assert set(re.findall(r"ADD\(\w, (\w+)\)", body)) <= {"s", *map(str, range(128, 256))}
        assert not set(written) & {"s", "r"}
    source = program(code, Use("fixed"), (bodies, source_of(code)), 3)
    objects = compiled(source, tmp_path / "objects", arch=arch())
    links = all_linked(objects, 3, tmp_path / "links")
    places = [functions(path) for path in links]
    least = 1 if arch() == "x86_64" else 4
    assert len({at % 64 for one in places for at in one.values()}) > 40 // least
    entered = [windows(path, 64) for path in links]
    assert len(set(entered)) > 1
    argv = [str(links[0]), "trace", "fixed", "constant", "4096"]
    assert subprocess.run(argv, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wide-24k", "wide-short-24k", "wide-calls-64k"])
def test_footprints_of_wide_code_are_those_of_its_name(name: str, tmp_path: Path) -> None:
    (one,) = [one for one in programs() if one.code == name]
    assert one.flow == "fixed"
    path = linked(compiled(one, tmp_path / "o", arch="x86_64"), 1, tmp_path / "link")
    kib = sum(size for _, size in spans(path).values()) / 1024
    assert kib == pytest.approx(int(name.rsplit("-", maxsplit=1)[-1][:-1]), rel=0.15)


@native
def test_what_calls_the_functions_is_at_one_place_and_some_are_not_called(tmp_path: Path) -> None:
    code = GeneratedCode("small", 12, 4, copies=3, called=4)
    one = program(code, Use("random"), (bodies_of(code), source_of(code)), 3)
    links = all_linked(compiled(one, tmp_path / "o", arch=arch()), 3, tmp_path / "links")
    places = {all_spans(path)["pass"][0] for path in links}
    assert len(places) == 1
    assert places.pop() % 64 == 0
    assert len({tuple(functions(path).values()) for path in links}) == 3
    assert "CALLED = 4 }" in source_of(code)
    assert "CALLED = 12 }" in source_of(msgspec.structs.replace(code, called=0))


def test_links_are_orders_of_the_same_functions(tmp_path: Path) -> None:
    host = host_target()
    assert host
    objects = compiled(small(), tmp_path / "objects", arch=host.name)
    links = all_linked(objects, 3, tmp_path / "links")
    assert [path.name for path in links] == ["1", "2", "3"]
    places = [functions(path) for path in links]
    assert {len(one) for one in places} == {12}
    assert len({tuple(sorted(one, key=lambda name: one[name])) for one in places}) == 3
    assert linked(objects, 1, tmp_path / "again").read_bytes() == links[0].read_bytes()
    as_objects_have_it = functions(linked(objects, 0, tmp_path / "unshuffled"))
    names = list(as_objects_have_it)
    assert sorted(names, key=lambda name: as_objects_have_it[name]) == sorted(
        names, key=lambda name: (name.split("_")[0], int(name.split("_f")[1]))
    )
    assert all(300 < footprint_bytes(path) < 8192 for path in links)


@native
def test_what_the_harness_prints(tmp_path: Path) -> None:
    host = host_target()
    assert host
    objects = compiled(small(), tmp_path / "objects", arch=host.name)
    path = linked(objects, 1, tmp_path / "link")
    core = subprocess.run(
        [make_facts(tmp_path, host.name)], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    argv = [str(path), "time", core, "1", "1", "random", "random", "4096"]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0].startswith("clock ")
    assert lines[-1] == "done"
    rounds = np.array([line.split() for line in lines[1:-1]], dtype=float)
    assert rounds.shape == (1, 5 * PASSES)
    assert (rounds > 0).all()
    for rounds_and_warm in ("2 1", f"1 {BEFORE + 1}"):
        argv[3:5] = rounds_and_warm.split()
        assert subprocess.run(argv, check=False).returncode == 2
    argv[3:5] = ["1", "1"]
    argv[2] = "100000000"
    assert subprocess.run(argv, check=False).returncode == 3


NUMBERS = """
static void say_numbers(const unsigned int *at, unsigned int n)
{
    while (n--) {
        say_number(*at++);
        say(" ");
    }
    say("\\n");
    say_all();
}
"""


def said_by(text: str, folder: Path, *arguments: str) -> list[str]:
    """What a program of that C text prints."""
    host = host_target()
    assert host
    path = folder / "said"
    if not path.exists():
        linked([compiled_file("said-o", text, folder, arch=host.name)], 0, path)
    return subprocess.run(
        [path, *arguments], capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.parametrize("before", [0, 2])
@native
def test_the_passes_that_are_timed_are_those_that_are_traced(before: int, tmp_path: Path) -> None:
    text = f"""
#include "start.h"
#include "timing.h"
{NUMBERS}
static unsigned int passes[256], n;

static void pass(unsigned int k)
{{
    passes[n++] = k;
}}

int main(int argc, char **argv)
{{
    int code = timing_main_once(argc, argv, 4, {before}, pass);

    say_numbers(passes, n);
    return code;
}}
"""

    def passes(*arguments: str) -> list[int]:
        return [int(word) for word in said_by(text, tmp_path, *arguments)[-1].split()]

    core = subprocess.run(
        [make_facts(tmp_path, arch())], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    traced = passes("trace")
    first = 4 * before
    assert traced[-4:] == list(range(first, first + 4))
    if before:
        # One goes before a round to fill the caches: of those that were passed already.
        assert traced == list(range(12))
        assert passes("time", core, "1", str(before)) == [*range(8), 4, *range(8, 12)]
        assert passes("time", core, "1", "1") == [*range(4, 8), 4, *range(8, 12)]
    else:
        assert passes("time", core, "2", "1") == [0, 1, 2, 3, *[3, 0, 1, 2, 3] * 2]


@native
def test_no_pass_of_drawn_calls_is_like_another(tmp_path: Path) -> None:
    code = GeneratedCode("small", 12, 4, copies=2)
    text = re.sub(r"copy\d+_f\d+", "called", source_of(code)).split("int main")[0]
    text += f"""
word called(word a, uint32_t r) {{ return a + r; }}
{NUMBERS}
int main(int argc, char **argv)
{{
    static unsigned int row[CALLS];

    set_order(argv[1][0]);
    for (unsigned int k = 0; k < (BEFORE + 1) * PASSES; k++) {{
        for (unsigned int i = 0; i < CALLS; i++)
            row[i] = order[k][i];
        say_numbers(row, CALLS);
    }}
    return 0;
}}
"""
    for flow in ("random", "mixed", "loop", "fixed"):
        rows = said_by(text, tmp_path, flow)
        assert len(rows) == PASSES * (BEFORE + 1)
        if flow == "fixed":
            calls = " ".join(rows).split()
            assert calls == calls[:12] * (len(calls) // 12) + calls[: len(calls) % 12]
            assert len(set(calls[:12])) == 12
        else:
            assert len(set(rows)) == len(rows)


def make_facts(folder: Path, arch: str) -> Path:
    from kdelta.workloads.calibration import bundle

    text = (Path(bundle.__file__).parent / "facts.c").read_text()
    return linked(
        [compiled_file("facts", text, folder / "facts-o", arch=arch)], 0, folder / "facts"
    )


@pytest.mark.slow
@pytest.mark.parametrize("arch", sorted(targets()))
def test_a_bundle_for_each_architecture(arch: str, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    said: list[str] = []
    manifest = make_bundle(folder, [small()], arch=arch, relinks=2, processes=1, log=said.append)
    assert said == ["compiling and linking small"]
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    helpers = {"facts", "specials", "run.sh", "settings", "plan", "manifest.json"}
    assert names == {"links/small/1", "links/small/2", *helpers}
    for name in ("links/small/1", "facts", "specials"):
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
