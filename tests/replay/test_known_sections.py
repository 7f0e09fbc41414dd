# SPDX-License-Identifier: GPL-2.0-or-later
"""What a digest says of functions beyond their sizes: who made them, and what lies next to
them.
"""

import msgspec

from kdelta.kernels.objects.digest import Digest
from kdelta.kernels.objects.objects import CodePiece
from kdelta.replay.layouts import aligned, ordered
from tests.replay.aligned_rows import at, both, digest, found_in, of_own, rows_of
from tests.replay.made_kernel import START, Row


def with_data(known: Digest, path: str, name: str, size: int) -> Digest:
    """A digest with code of no name in an object."""
    data = {name: CodePiece(9, size, ".text", ())}
    thing = msgspec.structs.replace(known.objects[path], data=data)
    return Digest({**known.objects, path: thing}, {})


def test_a_function_in_the_extent_of_another_ends_with_it() -> None:
    rows = rows_of((0, "bad8"), (4, "bad"), (28, "two"), (36, "three"))
    code = ("bad.S.o", {"bad8": (".text", 16), "bad": (".text", 16)})
    known = both(digest(code[1], code[0]), digest(of_own(two=8, three=8)))
    found = at(found_in(rows, known))
    assert (found["bad8"].bytes, found["bad"].bytes) == (4, 12)
    assert found["[after bad]"].address == START + 16


def test_code_of_a_section_alone_ends_before_what_aligns_the_next() -> None:
    rows = rows_of((0, "one"), (64, "page"), (100, "three"))
    known = both(
        digest(of_own(one=20, three=8)),
        digest({"page": (".text", 36)}, "page.S.o", alignment=32),
    )
    known = with_data(known, "a.c.o", ":.text.fixup", 12)
    found = at(found_in(rows, known))
    assert (found["[after one]"].address - START, found["[after one]"].bytes) == (20, 12)
    # No compiler aligns it.
    where = _where(rows, known, 16)
    assert (where["[after one]"], where["page"], where["three"]) == (20, 32, 80)


def test_what_stays_is_aligned_where_a_compiler_made_it() -> None:
    rows: list[Row] = [(START, "T", "_stext"), (START, "t", "one"), (START + 8, "t", "two")]
    rows += [(START + 16, "T", "__sched_text_start"), (START + 16, "t", "schedule")]
    rows += [(START + 36, "t", "by_hand"), (START + 44, "t", "io_schedule")]
    rows += [(START + 60, "T", "__sched_text_end"), (START + 0x1000, "T", "_etext")]
    known = both(
        digest(of_own(one=8, two=8)),
        digest({"schedule": (".sched.text", 20), "io_schedule": (".sched.text", 16)}, "s.c.o"),
        digest({"by_hand": (".sched.text", 8)}, "by_hand.S.o"),
    )
    where = _where(rows, known, 32)
    assert (where["one"], where["two"], where["schedule"]) == (0, 32, 64)
    assert (where["by_hand"], where["io_schedule"]) == (84, 96)


def test_of_weak_and_strong_code_that_counts_which_is_linked_there() -> None:
    rows = rows_of((0, "not_there"), (32, "receive"), (64, "three"))
    weak = digest({"not_there": (".text.not_there", 8), "receive": (".text.not_there", 8)}, "n.c.o")
    known = both(weak, digest(of_own(receive=4, three=8), alignment=32))
    assert at(found_in(rows, known))["receive"].bytes == 4


def test_assembler_between_aligned_functions_is_joined_to_none() -> None:
    names = [f"f{number}" for number in range(40)]
    starts = [(64 * number, name) for number, name in enumerate(names)]
    rows = rows_of(*starts, (2556, "copy"), (2576, "set"), (2584, "last"))
    known = both(
        digest(of_own(**dict.fromkeys(names, 60)), alignment=64),
        digest({"copy": (".text", 12)}, "copy.S.o"),
        digest({"set": (".text", 8)}, "set.S.o"),
        digest({"last": (".text", 8)}, "last.S.o"),
    )
    found = found_in(rows, known)
    groups = {at(found)[name].group for name in ("copy", "[after copy]", "set")}
    assert len(groups) == 3
    assert at(found)["[after copy]"].alignment == 8
    layout = ordered(found, ["set"])[0].tolist()
    where = {f.name: start - START for f, start in zip(found.functions, layout, strict=True)}
    assert (where["set"], where["f0"], where["copy"]) == (0, 64, 2556 + 64)


def _where(rows: list[Row], known: Digest, alignment: int) -> dict[str, int]:
    found = found_in(rows, known)
    layout = aligned(found, alignment).tolist()
    return {f.name: start - START for f, start in zip(found.functions, layout, strict=True)}


def test_weak_functions_behind_each_other_are_each_aligned() -> None:
    rows = rows_of((0, "idle"), (28, "two"), (36, "three"), (44, "four"))
    ours = digest(of_own(idle=20, enter=4, leave=4, two=8))
    strong = {"enter": (".text.enter", 40), "leave": (".text.leave", 48)}
    known = both(ours, digest(strong, "arch.c.o"), digest(of_own(three=8, four=8), "t.c.o"))
    found = at(found_in(rows, known))
    names = ("[after idle]", "[after idle]#2")
    assert [(found[name].address - START, found[name].bytes) for name in names] == [
        (20, 4),
        (24, 4),
    ]
    where = _where(rows, known, 32)
    assert [where[name] for name in ("idle", *names, "two", "three")] == [0, 32, 64, 96, 128]
    # What does not fill the gap is none of it.
    more = both(known, digest(of_own(idle=20, enter=4, leave=8, two=8)))
    assert at(found_in(rows, more))["[after idle]"].bytes == 8
