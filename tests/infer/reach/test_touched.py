# SPDX-License-Identifier: GPL-2.0-or-later
"""Which changes reach executed code: no planted effect is ever ruled out."""

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from kdelta.infer.reach.alive import BuiltSide
from kdelta.infer.reach.reach import NOT_EXECUTED, Excluded, NotExcluded, Reach
from kdelta.infer.reach.touched import (
    HARMLESS,
    NOTHING_BUILT,
    TouchedFiles,
    Tree,
    reach_of_changes,
    touches_config,
    tree_of,
)
from kdelta.kernels.objects.dependencies import Dependencies
from kdelta.kernels.objects.digest import Digest, GeneratedFile, ObjectDigest
from kdelta.kernels.objects.objects import CodePiece
from tests.infer.programs import OPTIONS, Program, programs

NOTHING: frozenset[str] = frozenset()
EVERY = frozenset(OPTIONS)


class Planted(msgspec.Struct, frozen=True):
    """A program whose options are changes: on means applied. `headers`: for each object the one
    through which changes reach it, or "" for its own source; `unknown`: generated headers of which
    it is unknown that they are made from their source.
    """

    program: Program
    headers: tuple[str, ...]
    unknown: frozenset[str]

    def tree(self, applied: frozenset[str]) -> Tree:
        side = self.program.side(applied)
        known = {path: self._source(path) for path in side.digest.generated}
        known = {path: source for path, source in known.items() if path not in self.unknown}
        made_from = {}
        for thing, header in zip(self.program.things, self.headers, strict=True):
            if thing.path in side.digest.objects:
                held = side.digest.objects[thing.path]
                made = {known[path] for path in held.generated if path in known}
                made_from[thing.path] = frozenset({held.source, *made}) | {header} - {""}
        generated = {path: frozenset({source}) for path, source in known.items()}
        return Tree(side, made_from, generated, self.unknown)

    def changes(self) -> list[TouchedFiles]:
        files: dict[str, set[str]] = {option: {"CREDITS"} for option in OPTIONS}
        every = self.program.digest(EVERY).objects
        for thing, header in zip(self.program.things, self.headers, strict=True):
            held = self.program.digest(EVERY | {thing.exists or ""}).objects[thing.path]
            for option in held.options:
                files[option].add(header or every[thing.path].source)
            if thing.header:
                files[thing.header].add(self._source(f"include/generated/{thing.header}.h"))
        for option in self.program.mentions().by_option:
            files[option].add("Makefile")
        return [TouchedFiles(option, frozenset(files[option])) for option in OPTIONS]

    def _source(self, generated: str) -> str:
        return generated.replace("include/generated/", "kernel/").replace(".h", ".c")


@st.composite
def planted(draw: st.DrawFn) -> Planted:
    program = draw(programs())
    headers = st.sampled_from(("", "", "include/a.h", "include/b.h"))
    generated = st.sampled_from([f"include/generated/{option}.h" for option in OPTIONS])
    n = len(program.things)
    return Planted(
        program,
        tuple(draw(st.lists(headers, min_size=n, max_size=n))),
        draw(st.frozensets(generated, max_size=2)),
    )


@given(planted())
def test_what_is_ruled_out_changes_nothing_that_is_executed(planted: Planted) -> None:
    program = planted.program
    found = reach_of_changes((planted.tree(NOTHING), planted.tree(EVERY)), planted.changes())
    ruled_out = {name for name, verdict in found.items() if isinstance(verdict, Excluded)}
    event(f"{len(ruled_out)} ruled out")
    for name in ruled_out:
        assert program.trace(frozenset({name})) == program.trace(NOTHING)
        assert program.trace(EVERY - {name}) == program.trace(EVERY)
    # The proof build.
    assert program.trace(EVERY - ruled_out) == program.trace(EVERY)


@given(planted(), st.frozensets(st.sampled_from(OPTIONS)))
@pytest.mark.slow
def test_a_kernel_between_the_ends_rules_out_less(
    planted: Planted, between: frozenset[str]
) -> None:
    ends = planted.tree(NOTHING), planted.tree(EVERY)
    changes = planted.changes()
    two = reach_of_changes(ends, changes)
    three = reach_of_changes((ends[0], planted.tree(between), ends[1]), changes)
    for name, verdict in three.items():
        if isinstance(verdict, Excluded):
            assert isinstance(two[name], Excluded)
            assert planted.program.trace(between ^ {name}) == planted.program.trace(between)


def code(*refs: str, content: int = 1) -> CodePiece:
    return CodePiece(content, 16, ".text", refs)


def thing(path: str, *, generated: tuple[str, ...] = (), **functions: CodePiece) -> ObjectDigest:
    source = path.replace(".o", ".c")
    return ObjectDigest(
        path, source, "", NOTHING, frozenset(generated), False, False, functions, {}, {}
    )


def tree(*objects: ObjectDigest, **files: tuple[str, ...]) -> Tree:
    """A kernel that executes `start` and `used`; arguments name the headers of each object."""
    generated = {"arch/x86/kernel/vmlinux.lds": GeneratedFile("1", NOTHING, "vmlinux.lds")}
    digest = Digest({one.path: one for one in objects}, generated)
    names = {one.path: one.path.rpartition("/")[2].removesuffix(".o") for one in objects}
    made_from = {
        one.path: frozenset({one.source, *files.get(names[one.path], ())}) for one in objects
    }
    executed = frozenset({"start", "used"})
    return Tree(
        BuiltSide(digest, executed, executed),
        made_from,
        {"arch/x86/kernel/vmlinux.lds": frozenset({"include/asm-generic/vmlinux.lds.h"})},
        tools=frozenset({"scripts/kallsyms.c", "tools/objtool/", "include/linux/elf.h"}),
    )


LIVE = thing("init/live.o", start=code())
DEAD = thing("drivers/dead.o", probe=code("start"))
BOTH = tree(
    LIVE,
    DEAD,
    live=("include/linux/all.h",),
    dead=("include/linux/all.h", "include/linux/driver.h"),
)


def only(*files: str, ends: tuple[Tree, ...] = (BOTH, BOTH), same: bool = False) -> Reach:
    change = TouchedFiles("it", frozenset(files))
    return reach_of_changes(ends, [change], ["it"] if same else [])["it"]


def test_the_source_of_a_dead_object_is_ruled_out() -> None:
    assert only("drivers/dead.c") == Excluded("it", 1, NOT_EXECUTED)
    assert only("drivers/dead.c", "include/linux/driver.h") == Excluded("it", 1, NOT_EXECUTED)


def test_the_source_and_the_headers_of_an_executed_object_are_kept() -> None:
    found = only("init/live.c")
    assert isinstance(found, NotExcluded)
    assert [(one.path, one.why) for one in found.alive] == [("init/live.o", "start executed")]
    assert found.undecided == ()
    found = only("include/linux/all.h", "Documentation/all.rst")
    assert isinstance(found, NotExcluded)
    assert (found.objects, len(found.alive)) == (2, 1)


@pytest.mark.parametrize(
    "file",
    [
        "Documentation/admin-guide/Makefile", "MAINTAINERS", "LICENSES/preferred/MIT", ".mailmap",
        "drivers/net/.gitignore", "drivers/net/other.c", "include/linux/other.h",
        "arch/arm64/kernel/entry.S", "arch/arm64/Kconfig", "arch/arm64/boot/dts/Makefile",
        "arch/um/kernel/Makefile", "tools/perf/Makefile", "tools/testing/selftests/x.sh",
        "tools/lib/bpf/libbpf.c", "samples/bpf/Makefile", "scripts/checkpatch.pl",
        "debian/changelog", "drivers/staging/README.rst", "tools/build/Makefile.feature",
        "drivers/gpu/drm/Makefile", "drivers/gpu/drm/Kbuild", "net/wireless/certs/a.hex",
    ],
)  # fmt: skip
def test_what_no_build_looks_at_is_ruled_out(file: str) -> None:
    assert only(file) == Excluded("it", 0, NOTHING_BUILT)


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("Makefile", "Makefile may change anything"),
        ("mm/Makefile", "mm/Makefile may change anything"),
        ("include/asm-generic/Kbuild", "include/asm-generic/Kbuild may change anything"),
        ("mm/Kconfig", "mm/Kconfig may change the config"),
        ("Documentation/Kconfig", "Documentation/Kconfig may change the config"),
        ("kernel/configs/hardening.config", "kernel/configs/hardening.config may change the con"),
        ("arch/x86/Kconfig.debug", "arch/x86/Kconfig.debug may change the config"),
        ("arch/Kconfig", "arch/Kconfig may change the config"),
        ("arch/x86/entry/syscalls/syscall_64.tbl", "syscall_64.tbl may change anything"),
        ("scripts/mod/new.c", "scripts/mod/new.c may change anything"),
        ("scripts/link-vmlinux.sh", "scripts/link-vmlinux.sh may change anything"),
        ("tools/objtool/Build", "the build runs what is made from tools/objtool/Build"),
        ("drivers/Makefile", "drivers/Makefile may change anything"),
        ("drivers/gpu/drm/Kconfig", "drivers/gpu/drm/Kconfig may change the config"),
        ("tools/objtool/check.c", "the build runs what is made from tools/objtool/check.c"),
        ("include/linux/elf.h", "the build runs what is made from include/linux/elf.h"),
        ("lib/raid6/unroll.awk", "lib/raid6/unroll.awk may change anything"),
        ("kernel/time/timeconst.bc", "kernel/time/timeconst.bc may change anything"),
    ],
)
def test_what_decides_how_all_is_built_reaches_everything(file: str, why: str) -> None:
    found = only(file)
    assert isinstance(found, NotExcluded)
    assert why in found.why
    assert (found.objects, len(found.alive)) == (2, 1)


def test_data_of_a_part_that_is_built_may_be_used_by_it() -> None:
    ends = tree(LIVE, thing("net/wireless/core.o", probe=code()))
    assert isinstance(only("net/wireless/certs/a.hex", ends=(BOTH, ends)), NotExcluded)
    assert isinstance(only("net/wireless/certs/Makefile", ends=(BOTH, ends)), Excluded)


def test_kconfig_that_grants_the_same_config_reaches_nothing() -> None:
    assert only("mm/Kconfig", same=True) == Excluded("it", 0, HARMLESS)
    assert only("mm/Kconfig", "drivers/dead.c", same=True) == Excluded("it", 1, NOT_EXECUTED)
    assert isinstance(only("mm/Kconfig", "mm/Makefile", same=True), NotExcluded)
    assert isinstance(only("mm/Kconfig", "init/live.c", same=True), NotExcluded)


def test_files_that_do_the_same_before_and_after_are_no_matter() -> None:
    files = frozenset({"init/live.c", "mm/Makefile", "drivers/dead.c"})
    change = TouchedFiles("it", files, harmless=frozenset({"init/live.c", "mm/Makefile"}))
    assert reach_of_changes((BOTH, BOTH), [change])["it"] == Excluded("it", 1, NOT_EXECUTED)
    whole = msgspec.structs.replace(change, harmless=files)
    assert reach_of_changes((BOTH, BOTH), [whole])["it"] == Excluded("it", 0, HARMLESS)


def test_the_linker_script_concerns_everything() -> None:
    found = only("include/asm-generic/vmlinux.lds.h")
    assert isinstance(found, NotExcluded)
    assert found.generated == ("arch/x86/kernel/vmlinux.lds",)
    assert "changes what arch/x86/kernel/vmlinux.lds is made from" in found.why


def test_generated_files_are_named_where_executed_code_includes_them() -> None:
    bounds = "include/generated/bounds.h"
    user = thing("init/live.o", generated=(bounds,), start=code())
    made = tree(user, DEAD, live=("kernel/bounds.c",))
    made = msgspec.structs.replace(made, generated={bounds: frozenset({"kernel/bounds.c"})})
    found = only("kernel/bounds.c", ends=(made, made))
    assert isinstance(found, NotExcluded)
    assert found.generated == (bounds,)
    assert [one.path for one in found.alive] == ["init/live.o"]


def test_a_file_that_the_range_removes_counts_by_the_end_that_has_it() -> None:
    old = tree(LIVE, thing("mm/old.o", used=code()))
    new = tree(LIVE, thing("mm/new.o", used=code()))
    for file, path in (("mm/old.c", "mm/old.o"), ("mm/new.c", "mm/new.o")):
        found = only(file, "mm/Makefile", ends=(old, new))
        assert isinstance(found, NotExcluded)
        assert path in [one.path for one in found.alive]
        assert f"{path} comes or goes" in found.undecided


def test_an_object_of_one_end_that_several_changes_reach_was_not_seen_with_each() -> None:
    ends = tree(LIVE), tree(LIVE, DEAD)
    brings = TouchedFiles("brings", frozenset({"drivers/Makefile", "drivers/dead.c"}))
    fixes = TouchedFiles("fixes", frozenset({"drivers/dead.c"}))
    found = reach_of_changes(ends, [brings, fixes])
    kept = found["fixes"]
    assert isinstance(kept, NotExcluded)
    assert (kept.unseen, kept.alive) == (("drivers/dead.o",), ())
    assert isinstance(found["brings"], NotExcluded)


def test_an_object_of_one_end_that_nothing_explains_is_reached_by_all_changes() -> None:
    ends = tree(LIVE), tree(LIVE, thing("mm/new.o", used=code()))
    assert isinstance(only("drivers/other.c", ends=ends), NotExcluded)
    assert isinstance(only("drivers/other.c", "mm/new.c", ends=ends), NotExcluded)
    more = [
        TouchedFiles("it", frozenset({"drivers/other.c"})),
        TouchedFiles("mm", frozenset({"mm/Kconfig"})),
    ]
    assert isinstance(reach_of_changes(ends, more)["it"], Excluded)


def test_what_makes_a_file_is_not_known_so_any_source_may() -> None:
    table = "lib/table.h"
    live = thing("init/live.o", generated=(table,), start=code())

    def end(sha256: str) -> Tree:
        made = tree(live, DEAD)
        files = {table: GeneratedFile(sha256, NOTHING, "prepare")}
        side = msgspec.structs.replace(made.side, digest=Digest(made.side.digest.objects, files))
        return msgspec.structs.replace(made, side=side, unknown=frozenset({table}))

    assert isinstance(only("drivers/dead.c", ends=(end("1"), end("2"))), NotExcluded)
    comments = TouchedFiles("it", frozenset({"drivers/dead.c"}), frozenset({"drivers/dead.c"}))
    assert isinstance(reach_of_changes((end("1"), end("2")), [comments])["it"], NotExcluded)
    assert isinstance(only("MAINTAINERS", ends=(end("1"), end("2"))), Excluded)
    assert isinstance(only("drivers/dead.c", ends=(end("1"), end("1"))), Excluded)


def test_a_tree_of_what_its_build_left() -> None:
    some = frozenset({"x.h"})
    found = Dependencies(BOTH.made_from, BOTH.generated, some, BOTH.tools, some)
    assert tree_of(BOTH.side, found) == msgspec.structs.replace(BOTH, unknown=some, parsed=some)


def test_which_changes_touch_what_configs_are_made_from() -> None:
    change = TouchedFiles("it", frozenset({"mm/Kconfig", "mm/slub.c"}))
    assert touches_config(change)
    assert not touches_config(msgspec.structs.replace(change, harmless=frozenset({"mm/Kconfig"})))
    assert not touches_config(
        TouchedFiles("it", frozenset({"mm/Makefile", "scripts/kconfig/conf.c"}))
    )
