# SPDX-License-Identifier: GPL-2.0-or-later
"""A closer look at changes, on the fake tree: real texts, configs and objects."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.host.command import quiet
from kdelta.infer.reach.alive import BuiltSide
from kdelta.infer.reach.reach import NOT_EXECUTED, Excluded, NotExcluded, Reach
from kdelta.infer.reach.touched import HARMLESS, TouchedFiles, Tree, reach_of_changes, tree_of
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.kbuild.built import DEPENDENCIES, DIGEST
from kdelta.kernels.kbuild.workbench import Workbench
from kdelta.kernels.objects.dependencies import load_dependencies
from kdelta.kernels.objects.digest_file import load_digest
from kdelta.kernels.sources.source import Source, source_of, with_files
from kdelta.lab.progress import Silent
from kdelta.spec.kernel import SourceSpec, parse_kernel_spec
from kdelta.studies.search.closer import Closer, harmless_files, reach_looked_closer
from tests.kernels.trees import fake_tree, kernel

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("own_cache")]

EXECUTED = frozenset({"start", "start_kernel", "lock", "clear_pages"})
WARN = """
#define WARN() asm volatile("1: ud2\\n.pushsection __bug_table,\\"aw\\"\\n" \\
    "2: .long 1b - .\\n.long %c0 - .\\n.word %c1\\n.word 1\\n.org 2b + 12\\n.popsection" \\
    :: "i"(__FILE__), "i"(__LINE__))
"""


class Bench:
    """A kernel of the fake tree, with a driver that nothing calls, and changes each made on it."""

    def __init__(self, folder: Path) -> None:
        tree = fake_tree(folder)
        core = tree / "kernel/core.c"
        core.write_text(core.read_text().replace("{\n\tlock", "{\n\tWARN();\n\tlock"))
        core.write_text(core.read_text().replace("static int held;", f"static int held;{WARN}"))
        self.tree = tree
        _, self.built = kernel(tree, "+CONFIG_OLD_DRIVER=y")
        spec = parse_kernel_spec(f"{tree} +CONFIG_OLD_DRIVER=y")
        assert isinstance(spec, SourceSpec)
        source = source_of(spec, quiet)
        assert isinstance(source, Source)
        self.spec, self.source = spec, source
        self.changes: list[TouchedFiles] = []
        self.states: dict[str, tuple[Source, Source]] = {}

    def change(self, name: str, file: str, before: str, after: str) -> None:
        text = (self.tree / file).read_text()
        assert before in text
        made = with_files(self.source, {file: text.replace(before, after)}, quiet)
        self.changes.append(TouchedFiles(name, frozenset({file})))
        self.states[name] = self.source, made

    def end(self, executed: frozenset[str] = EXECUTED) -> Tree:
        digest = load_digest(self.built.path / DIGEST)
        return tree_of(
            BuiltSide(digest, executed, executed), load_dependencies(self.built.path / DEPENDENCIES)
        )

    @property
    def config(self) -> str:
        return (self.built.path / self.built.config).read_text()

    def closer(self, end: Tree) -> Closer:
        return Closer([end, end], [parse_config(self.config)], self.states.get, Silent())

    def by_text(self, end: Tree | None = None) -> tuple[list[TouchedFiles], dict[str, Reach]]:
        end = end or self.end()
        reached = reach_of_changes([end, end], self.changes)
        return self.closer(end).by_text(self.spec, self.changes, reached)

    def by_compiling(self, end: Tree | None = None) -> dict[str, Reach]:
        end = end or self.end()
        reached = reach_of_changes([end, end], self.changes)
        return self.closer(end).by_compiling(self.built, self.config, reached)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def ruled_out(found: dict[str, Reach]) -> dict[str, str]:
    return {name: one.why for name, one in found.items() if isinstance(one, Excluded)}


@pytest.mark.slow
def test_the_text_of_files_and_the_config_that_they_grant(bench: Bench) -> None:
    bench.change("comment", "kernel/lock.c", "/* SPDX", "/* A lock. SPDX")
    bench.change("list", "mm/Makefile", "pages.o", "pages.o\nobj-$(CONFIG_SLOW) += slow.o")
    bench.change("flags", "mm/Makefile", "obj-y", "ccflags-y += -O1\nobj-y")
    bench.change("help", "Kconfig", 'mainmenu "Fake"', '# A comment\nmainmenu "Fake"')
    bench.change("new", "Kconfig", "choice\n", 'config NEW\n\tbool "New"\n\nchoice\n')
    bench.change("select", "Kconfig", "that nothing calls", 'it"\n\tselect SLOW\n\n#"')
    bench.change("cost", "kernel/lock.c", "+= 1", "+= 2")
    bench.change("dead", "drivers/old.c", "static int old;", "static int old = 1;")
    changes, found = bench.by_text()
    assert ruled_out(found) == {
        "comment": HARMLESS,
        "list": HARMLESS,
        "help": HARMLESS,
        "new": HARMLESS,
        "dead": NOT_EXECUTED,
    }
    assert [one.name for one in changes if one.harmless] == ["comment", "list"]
    kept = {name: one.undecided for name, one in found.items() if isinstance(one, NotExcluded)}
    assert kept == {
        "flags": ("mm/Makefile may change anything",),
        "select": ("Kconfig may change the config",),
        "cost": (),
    }


def test_a_script_may_look_into_comments(bench: Bench) -> None:
    bench.change("comment", "kernel/lock.c", "/* SPDX", "/* A lock. SPDX")
    parsed = msgspec.structs.replace(bench.end(), parsed=frozenset({"kernel/lock.c"}))
    assert ruled_out(bench.by_text()[1]) == {"comment": HARMLESS}
    assert ruled_out(bench.by_text(parsed)[1]) == {}


@pytest.mark.slow
def test_objects_that_come_out_the_same(bench: Bench) -> None:
    bench.change("line", "kernel/lock.c", "void lock", "/* One\n * more. */\nvoid lock")
    bench.change("header", "include/linux/lock.h", "#ifdef", "void other(int *it);\n#ifdef")
    bench.change("name", "mm/pages.c", "static int pages", "extern int never;\nstatic int pages")
    bench.change("cost", "kernel/lock.c", "+= 1", "+= 2")
    bench.change("broken", "kernel/lock.c", "+= 1", "+= ")
    bench.change("flags", "mm/Makefile", "obj-y", "ccflags-y += -O1\nobj-y")
    found = bench.by_compiling()
    assert set(ruled_out(found)) == {"line", "header", "name"}
    assert ruled_out(found)["line"] == "1 executed objects come out the same with it"
    assert ruled_out(found)["header"] == "2 executed objects come out the same with it"


@pytest.mark.slow
def test_what_was_compiled_once_is_not_compiled_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.change("line", "kernel/lock.c", "void lock", "/* One\n * more. */\nvoid lock")
    bench.change("cost", "kernel/lock.c", "+= 1", "+= 2")
    first = bench.by_compiling()
    assert set(ruled_out(first)) == {"line"}
    compiled: list[str] = []
    at = Workbench.compile_at

    def noted(*given: Any, **more: Any) -> Any:
        compiled.append(given[1].tree)
        return at(*given, **more)

    monkeypatch.setattr(Workbench, "compile_at", noted)
    assert bench.by_compiling() == first
    assert compiled == []
    # Other ends are another question.
    end = bench.end()
    side = msgspec.structs.replace(end.side, executed=end.side.executed | {"another"})
    assert bench.by_compiling(msgspec.structs.replace(end, side=side)) == first
    assert len(compiled) == 4


@pytest.mark.slow
def test_all_of_it_together(bench: Bench) -> None:
    bench.change("comment", "kernel/lock.c", "/* SPDX", "/* A lock. SPDX")
    bench.change("line", "mm/pages.c", "int clear", "/* One more. */\nint clear")
    bench.change("help", "Kconfig", 'mainmenu "Fake"', '# A comment\nmainmenu "Fake"')
    bench.change("dead", "drivers/old.c", "static int old;", "static int old = 1;")
    bench.change("cost", "kernel/lock.c", "+= 1", "+= 2")
    ends, built = [bench.end(), bench.end()], [bench.built, bench.built]

    def found(*, recompile: bool) -> set[str]:
        reached = reach_looked_closer(
            bench.spec,
            built,
            ends,
            bench.changes,
            states=bench.states.get,
            progress=Silent(),
            recompile=recompile,
        )
        return set(ruled_out(reached))

    assert found(recompile=True) == {"comment", "line", "help", "dead"}
    assert found(recompile=False) == {"comment", "help", "dead"}


@pytest.mark.slow
def test_lines_of_warnings_count_where_warnings_were_looked_up(bench: Bench) -> None:
    bench.change("line", "kernel/core.c", "void start", "/* One more. */\n\nvoid start")
    assert set(ruled_out(bench.by_compiling())) == {"line"}
    warned = bench.end(EXECUTED | {"report_bug"})
    assert not ruled_out(bench.by_compiling(warned))


def test_without_a_build_nothing_is_compiled(bench: Bench) -> None:
    bench.change("line", "kernel/lock.c", "void lock", "/* One\n * more. */\nvoid lock")
    shutil.rmtree(next(bench.source.folder.glob("out-*")))
    assert not ruled_out(bench.by_compiling())


@pytest.mark.slow
def test_data_that_only_the_other_end_reads_counts(bench: Bench) -> None:
    bench.change("data", "drivers/old.c", "static int old;", "int old_limit = 5;\nstatic int old;")
    more = {"drivers/old.c": (bench.tree / "drivers/old.c").read_text() + "int old_limit = 4;\n"}
    before = with_files(bench.source, more, quiet)
    text = more["drivers/old.c"].replace("= 4", "= 5")
    bench.states["data"] = before, with_files(before, {"drivers/old.c": text}, quiet)
    first = bench.end()
    assert set(ruled_out(reach_of_changes([first, first], bench.changes))) == {"data"}
    # In the other end what is executed refers to the variable.
    lock = first.side.digest.objects["kernel/lock.o"]
    reading = msgspec.structs.replace(lock.functions["lock"], refs=("old_limit",))
    lock = msgspec.structs.replace(lock, functions={"lock": reading})
    old = first.side.digest.objects["drivers/old.o"]
    limit = msgspec.structs.replace(reading, refs=(), section=".data")
    old = msgspec.structs.replace(old, data={**old.data, "old_limit": limit})
    held = {**first.side.digest.objects, "kernel/lock.o": lock, "drivers/old.o": old}
    digest = msgspec.structs.replace(first.side.digest, objects=held)
    last = msgspec.structs.replace(first, side=BuiltSide(digest, EXECUTED, EXECUTED))
    reached = reach_of_changes([first, last], bench.changes)
    closer = Closer([first, last], [parse_config(bench.config)], bench.states.get, Silent())
    assert not ruled_out(closer.by_compiling(bench.built, bench.config, reached))


def test_files_that_are_not_on_both_sides_are_never_harmless(bench: Bench) -> None:
    files = frozenset({"kernel/lock.c", "no/such.c", "kernel", "Makefile"})
    text = (bench.tree / "kernel/lock.c").read_text().replace("/* ", "/*  ")
    made = with_files(bench.source, {"kernel/lock.c": text}, quiet)
    config = [parse_config(bench.config)]
    assert harmless_files(files, (bench.source, made), config) == {"kernel/lock.c"}
    assert harmless_files(files, (bench.source, bench.source), config) == frozenset()
