# SPDX-License-Identifier: GPL-2.0-or-later
"""Which units reach executed code: no planted effect is ever ruled out."""

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from kdelta.infer.reach.alive import BuiltSide, find_alive
from kdelta.infer.reach.reach import (
    Excluded,
    NotExcluded,
    compare_objects,
    differences_that_matter,
    objects_to_recompile,
    reach_of_units,
)
from kdelta.kernels.config.mentions import EVERYTHING, Mention, Mentions
from kdelta.kernels.objects.digest import ANY_OPTION, GeneratedFile
from kdelta.kernels.objects.objects import CodePiece
from tests.infer.programs import OPTIONS, Element, Program, Thing, programs

UNITS = {option: (option,) for option in OPTIONS}
CONFIGS = st.frozensets(st.sampled_from(OPTIONS))
NOTHING: frozenset[str] = frozenset()
EVERY = frozenset(OPTIONS)


@given(programs(), CONFIGS)
def test_what_is_ruled_out_changes_nothing_that_is_executed(
    program: Program, a: frozenset[str]
) -> None:
    b = EVERY - a
    found = reach_of_units(program.side(a), program.side(b), UNITS, program.mentions())
    ruled_out = {unit for unit, verdict in found.items() if isinstance(verdict, Excluded)}
    event(f"{len(ruled_out)} ruled out")
    for unit in ruled_out:
        assert program.trace(a ^ {unit}) == program.trace(a)
    # The proof build: A with all that is kept flipped. Objects that only A has are in it, as they
    # are with B's other options: whether they then run, it is there to find out.
    if not any(thing.exists in ruled_out & a and thing.initcall in b for thing in program.things):
        assert program.trace(a ^ (EVERY - ruled_out)) == program.trace(b)


@given(programs(), CONFIGS)
@pytest.mark.slow
def test_what_recompiling_clears_changes_nothing_that_is_executed(
    program: Program, a: frozenset[str]
) -> None:
    side = program.side(a)
    found = reach_of_units(side, program.side(EVERY - a), UNITS, program.mentions())
    for unit, verdict in found.items():
        if not isinstance(verdict, NotExcluded):
            continue
        targets = objects_to_recompile(verdict, side.digest)
        if targets is None:
            continue
        assert set(targets).isdisjoint(verdict.only_b)
        paths = {thing.path for thing in verdict.alive} | set(verdict.unseen)
        matters = _matters(program, a, unit, paths - set(verdict.only_b))
        same = program.trace(a ^ {unit}) == program.trace(a)
        event(f"matters {matters}, same {same}, {len(verdict.only_b)} only in B")
        assert matters or same


def _matters(program: Program, config: frozenset[str], unit: str, paths: set[str]) -> bool:
    """Whether the objects of a config come out otherwise with the unit flipped."""
    flipped = program.digest(config ^ {unit})
    found = differences_that_matter(program.side(config), flipped, paths)
    return any(difference.matters for difference in found)


def _program(*things: Thing) -> Program:
    start = Thing("init.o", (Element("start", ("used",)),), ())
    return Program((start, *things))


def _only(program: Program, mentions: Mentions | None = None) -> Excluded | NotExcluded:
    """What becomes of CONFIG_A between a config without options and one with CONFIG_A."""
    sides = program.side(NOTHING), program.side(frozenset({"CONFIG_A"}))
    units = {"A": ("CONFIG_A",)}
    return reach_of_units(*sides, units, mentions or program.mentions())["A"]


def test_dead_object_is_ruled_out_and_counted() -> None:
    dead = Thing("dead.o", (Element("unused", (), "CONFIG_A"),), ())
    assert _only(_program(dead)) == Excluded("A", 1, "no executed code depends on it")


def test_option_that_nothing_mentions_is_ruled_out() -> None:
    assert _only(_program()) == Excluded("A", 0, "no executed code depends on it")


def test_executed_object_is_kept_and_said_why() -> None:
    live = Thing("live.o", (Element("used", (), "CONFIG_A"), Element("also", ())), ())
    found = _only(_program(live))
    assert isinstance(found, NotExcluded)
    assert [(thing.path, thing.why) for thing in found.alive] == [("live.o", "used executed")]
    assert "live.o (used executed)" in found.why


def test_data_is_alive_by_way_of_other_data() -> None:
    table = Thing("table.o", (Element("t", ()),), (Element("rows", ("cells",)),))
    cells = Thing("cells.o", (Element("c", ()),), (Element("cells", (), "CONFIG_A"),))
    reader = Thing("reader.o", (Element("used", ("rows",)),), ())
    found = _only(_program(table, cells, reader))
    assert isinstance(found, NotExcluded)
    assert [thing.why for thing in found.alive] == ["used reaches cells"]


def test_object_of_one_side_is_reached_by_its_makefile_line_alone() -> None:
    live = Thing("live.o", (Element("used", ()),), (), exists="CONFIG_A")
    found = _only(_program(live))
    assert isinstance(found, NotExcluded)
    assert found.undecided == ("live.o comes or goes",)
    assert objects_to_recompile(found, _program(live).digest(NOTHING)) is None


def test_object_that_another_unit_brings_is_decided_where_it_is() -> None:
    brought = Thing("live.o", (Element("used", (), "CONFIG_A"),), (), exists="CONFIG_B")
    program = _program(brought)
    both = frozenset({"CONFIG_A", "CONFIG_B"})
    units = {"A": ("CONFIG_A",), "B": ("CONFIG_B",)}
    found = reach_of_units(program.side(NOTHING), program.side(both), units, program.mentions())
    kept, brings = found["A"], found["B"]
    assert isinstance(kept, NotExcluded)
    assert isinstance(brings, NotExcluded)
    assert (kept.only_b, kept.undecided) == (("live.o",), ())
    assert brings.undecided == ("live.o comes or goes",)
    assert objects_to_recompile(kept, program.digest(NOTHING)) == []
    assert _matters(program, both, "CONFIG_A", set(kept.only_b))
    # What only A has is decided there, whatever removes it.
    back = reach_of_units(program.side(both), program.side(NOTHING), units, program.mentions())["A"]
    assert isinstance(back, NotExcluded)
    assert (back.only_b, back.undecided) == ((), ())
    assert objects_to_recompile(back, program.digest(both)) == ["live.o"]


def test_object_of_one_side_that_nothing_explains_is_reached_by_all_units() -> None:
    live = Thing("live.o", (Element("used", ()),), (), exists="CONFIG_A")
    assert isinstance(_only(_program(live), Mentions({})), NotExcluded)


def test_mention_for_everything_reaches_everything() -> None:
    live = Thing("live.o", (Element("used", ()),), ())
    link = Mentions({"CONFIG_A": (Mention("scripts/link-vmlinux.sh:7", EVERYTHING),)})
    found = _only(_program(live), link)
    assert isinstance(found, NotExcluded)
    assert found.objects == 2
    assert found.undecided == ("scripts/link-vmlinux.sh:7 looks at it",)


def test_folder_of_a_mention_is_reached_with_all_below_it() -> None:
    live = Thing("mm/kasan/live.o", (Element("used", ()),), ())
    for folder, kind in (
        ("mm/", NotExcluded),
        ("m/", Excluded),
        ("mm/kasan/", NotExcluded),
        ("fs/", Excluded),
    ):
        mentions = Mentions({"CONFIG_A": (Mention("Makefile:1", folder),)})
        assert isinstance(_only(_program(live), mentions), kind)


def test_linker_script_keeps_a_unit_until_it_is_made_again() -> None:
    script = "arch/x86/kernel/vmlinux.lds"
    options = frozenset({"CONFIG_A"})
    sides = []
    for text in ("one", "other"):
        side = _program().side(NOTHING)
        side.digest.generated[script] = GeneratedFile(text, options, script)
        sides.append(side)
    found = reach_of_units(sides[0], sides[0], {"A": options}, Mentions({}))["A"]
    assert isinstance(found, NotExcluded)
    assert objects_to_recompile(found, sides[0].digest) == [script]
    same = differences_that_matter(sides[0], sides[0].digest, ())
    other = differences_that_matter(sides[0], sides[1].digest, ())
    assert (same, [difference.matters for difference in other]) == ([], [True])


def test_generated_file_of_unknown_making_counts_if_it_differs() -> None:
    live = Thing("live.o", (Element("used", ()),), (), header="CONFIG_F")
    path = "include/generated/CONFIG_F.h"
    sides = []
    for text in ("one", "other"):
        side = _program(live).side(NOTHING)
        side.digest.generated[path] = GeneratedFile(text, frozenset({ANY_OPTION}), "prepare")
        sides.append(side)
    units = {"A": ("CONFIG_A",)}
    assert isinstance(reach_of_units(sides[0], sides[0], units, Mentions({}))["A"], Excluded)
    assert isinstance(reach_of_units(sides[0], sides[1], units, Mentions({}))["A"], NotExcluded)


def test_generated_file_that_only_new_objects_include_is_reached_by_who_brings_them() -> None:
    path = "include/generated/CONFIG_F.h"
    brought = Thing("new.o", (Element("used", ()),), (), header="CONFIG_F", exists="CONFIG_B")
    program = _program(brought)
    a, b = program.side(NOTHING), program.side(frozenset({"CONFIG_B"}))
    del a.digest.generated[path]
    b.digest.generated[path] = GeneratedFile("text", frozenset({ANY_OPTION}), path)
    units = {"A": ("CONFIG_A",), "B": ("CONFIG_B",)}
    found = reach_of_units(a, b, units, program.mentions())
    assert isinstance(found["A"], Excluded)
    assert isinstance(found["B"], NotExcluded)
    # An object that A has too may come to include it with any unit.
    name, other = next((n, o) for n, o in b.digest.objects.items() if n in a.digest.objects)
    b.digest.objects[name] = msgspec.structs.replace(other, generated=frozenset({path}))
    kept = reach_of_units(a, b, units, program.mentions())["A"]
    assert isinstance(kept, NotExcluded)


def test_dead_object_that_another_unit_brings_is_looked_at_where_it_is() -> None:
    brought = Thing("new.o", (Element("unused", (), "CONFIG_A"),), (), exists="CONFIG_B")
    program = _program(brought)
    both = frozenset({"CONFIG_A", "CONFIG_B"})
    units = {"A": ("CONFIG_A",), "B": ("CONFIG_B",)}
    kept = reach_of_units(program.side(NOTHING), program.side(both), units, program.mentions())["A"]
    assert isinstance(kept, NotExcluded)
    assert (kept.unseen, kept.only_b, kept.undecided) == ((), ("new.o",), ())


def _with_section(section: str, side: BuiltSide) -> BuiltSide:
    dead = side.digest.objects["dead.o"]
    held = msgspec.structs.replace(dead, collected={section: CodePiece(1, 8, section, ())})
    side.digest.objects["dead.o"] = held
    return side


def test_records_keep_an_object_alive_by_who_walks_them() -> None:
    dead = Thing("dead.o", (Element("unused", ()),), ())
    walker = Thing("walker.o", (Element("used", ("search_extable",)),), ())
    walked = Thing("walked.o", (Element("search_extable", ()),), ())
    for section, alive in (
        ("__param", True),
        (".data..percpu..aligned", True),
        ("never_heard_of", True),
        ("__ex_table", True),
        ("__jump_table", False),
        (".exitcall.exit", False),
    ):
        side = _with_section(section, _program(dead, walker, walked).side(NOTHING))
        assert ("dead.o" in find_alive(side).objects) is alive, section
    side = _with_section("__ex_table", _program(dead, walker, walked).side(NOTHING))
    quiet = msgspec.structs.replace(side, measured=NOTHING)
    assert "dead.o" not in find_alive(quiet).objects
    unknown = msgspec.structs.replace(side, measured=None)
    assert "dead.o" in find_alive(unknown).objects


def test_assembler_and_unreadable_objects_are_alive() -> None:
    dead = Thing("dead.o", (Element("unused", ()),), ())
    side = _program(dead).side(NOTHING)
    plain = side.digest.objects["dead.o"]
    assert "dead.o" not in find_alive(side).objects
    side.digest.objects["dead.o"] = msgspec.structs.replace(plain, is_assembler=True)
    assert "dead.o" in find_alive(side).objects


def test_differences_are_named() -> None:
    before = _program(Thing("x.o", (Element("f", (), "CONFIG_A"), Element("g", ())), ()))
    after = _program(Thing("x.o", (Element("f", (), "CONFIG_A"), Element("h", ())), ()))
    found = compare_objects(
        before.digest(NOTHING), after.digest(frozenset({"CONFIG_A"})), ["x.o", "init.o"]
    )
    named = [(difference.what, difference.name, difference.how) for difference in found]
    assert named == [
        ("function", "f", "changed"),
        ("function", "g", "removed"),
        ("function", "h", "added"),
    ]


def test_new_definition_of_a_name_in_use_matters() -> None:
    """A weak function gives way to it, and so does a weak reference to nothing."""
    weak = Thing("weak.o", (Element("hook", ()),), ())
    user = Thing("user.o", (Element("used", ("hook", "maybe")),), ())
    other = Thing("other.o", (Element("unused", ()),), ())
    side = _program(weak, user, other).side(NOTHING)
    for new, matters in (("hook", True), ("maybe", True), ("unheard", False)):
        strong = Thing("other.o", (Element("unused", ()), Element(new, ())), ())
        flipped = _program(weak, user, strong).digest(NOTHING)
        found = differences_that_matter(side, flipped, ["other.o"])
        assert [(difference.name, difference.matters) for difference in found] == [(new, matters)]
