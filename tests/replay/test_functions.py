# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions blocks belong to, what a relink can move of them, and why not the others."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.symbols import parse_symbols
from kdelta.counts.trace import DATA
from kdelta.replay.functions import FIXED, REST, Placement, placement_of
from kdelta.replay.kernel_text import kernel_text, vmlinux_symbols
from kdelta.replay.layouts import ordered
from kdelta.spec.errors import LabError, UserError
from tests.replay.made_kernel import START, Row, digest_of, kallsyms, text_rows, trace_of

SIZES = {"alpha": 48, "beta": 16, "gamma": 100, "delta": 32}
ALPHA, BETA, GAMMA, DELTA = START, START + 48, START + 64, START + 176
USER = 0x401000
MODULE = 0xFFFFFFFFC0000000


def symbols(rows: list[Row] | None = None) -> bytes:
    return kallsyms(
        rows or text_rows(SIZES), [(MODULE, "__pfx_probe", "nic"), (MODULE + 16, "probe", "nic")]
    )


def names(found: Placement, *, movable: bool) -> list[str]:
    return [function.name for function in found.functions if function.movable is movable]


def group_of(found: Placement, name: str) -> int:
    return found.functions[found.indexes[name][0]].group


def test_each_block_lies_in_its_function() -> None:
    blocks = [(ALPHA, 10), (GAMMA + 4, 8), (MODULE + 20, 4), (USER, 30), (DELTA + 28, 4)]
    found = placement_of([trace_of(blocks), trace_of(blocks[1:2])], parse_symbols(symbols()))
    of_blocks = [found.functions[index].name for index in found.placed[0].function]
    assert of_blocks == ["alpha", "gamma", "probe", REST, "delta"]
    assert found.placed[0].offset.tolist() == [0, 4, 4, USER, 28]
    assert found.placed[1].function.tolist() == [2]
    executed = [f.name for f, was in zip(found.functions, found.executed, strict=True) if was]
    assert executed == ["alpha", "gamma", "delta", "probe", REST]
    linked = found.addresses()
    for (address, _), index, offset in zip(
        blocks, found.placed[0].function, found.placed[0].offset, strict=True
    ):
        assert int(linked[index] + offset) == address


def test_what_moves_and_why_not_the_others() -> None:
    found = placement_of([trace_of([(MODULE + 20, 4), (USER, 2)])], parse_symbols(symbols()))
    assert names(found, movable=True) == ["alpha", "beta", "gamma", "delta"]
    reasons = {f.name: f.why_not for f in found.functions if not f.movable}
    assert reasons == {
        "do_syscall_64": "in the noinstr text",
        "probe": "in a module",
        REST: "user code",
    }
    assert {f.origin for f in found.functions} == {"kernel", "[nic]", REST}
    assert {f.group for f in found.functions if not f.movable} == {FIXED}
    sizes = [(f.address, f.bytes, f.alignment) for f in found.functions[:4]]
    assert sizes == [(ALPHA, 48, 16), (BETA, 16, 16), (GAMMA, 112, 16), (DELTA, 80, 16)]


def test_padding_belongs_to_the_function_after_it() -> None:
    rows = text_rows({"__pfx_alpha": 16, "alpha": 20, "__pfx_beta": 16, "beta": 64})
    blocks = [(START + 16, 4), (START + 40, 4), (START + 64, 4)]
    found = placement_of([trace_of(blocks)], parse_symbols(symbols(rows)))
    alpha, beta = found.functions[:2]
    assert (alpha.name, alpha.address, alpha.entry, alpha.bytes) == ("alpha", START, 16, 48)
    assert (beta.name, beta.address, beta.entry) == ("beta", START + 48, 16)
    assert found.placed[0].function.tolist() == [0, 0, 1]
    assert found.placed[0].offset.tolist() == [16, 40, 16]


def test_names_of_one_address_are_one_function_and_functions_of_one_name_several() -> None:
    rows = text_rows({"one": 16, "two": 16, "three": 16})
    rows = [(at, kind, "init" if name in ("one", "two") else name) for at, kind, name in rows]
    rows += [(START + 32, "T", "__x64_sys_open"), (START + 32, "T", "__ia32_sys_open")]
    found = placement_of([], parse_symbols(symbols(rows)))
    assert names(found, movable=True) == ["init", "init#2", "__x64_sys_open"]
    assert found.indexes["init"] == (0, 1)
    assert found.indexes["init#2"] == (1,)
    assert found.indexes["three"] == found.indexes["__ia32_sys_open"] == (2,)


def test_execution_that_falls_into_the_next_function_joins_them() -> None:
    blocks = [(ALPHA, 8), (BETA, 16), (GAMMA, 4), (GAMMA + 108, 4), (DELTA, 4)]
    data = DATA | 1
    # beta falls into gamma within a piece, with an access to data between; gamma into delta from
    # one piece to the next; alpha calls beta.
    trace = trace_of(blocks, pieces=[[0, 1, data, 2, 3], [data, 4]], sequence=[0, 1])
    found = placement_of([trace], parse_symbols(symbols()))
    groups = [group_of(found, name) for name in ("beta", "gamma", "delta")]
    assert len(set(groups)) == 1
    assert group_of(found, "alpha") != groups[0]
    # Pieces that are stored side by side need not follow each other.
    trace = trace_of(blocks, pieces=[[1], [2]], sequence=[1, 0])
    found = placement_of([trace], parse_symbols(symbols()))
    assert group_of(found, "beta") != group_of(found, "gamma")
    # In another order nothing falls: a jump goes from one to the other.
    trace = trace_of(blocks, pieces=[[1, 0, 2, 4, 3]], sequence=[0])
    found = placement_of([trace], parse_symbols(symbols()))
    assert len({group_of(found, name) for name in SIZES}) == 4


def test_a_block_across_two_functions_joins_them() -> None:
    found = placement_of([trace_of([(BETA + 8, 16)])], parse_symbols(symbols()))
    assert group_of(found, "beta") == group_of(found, "gamma") != group_of(found, "alpha")


def test_what_falls_into_code_that_stays_stays() -> None:
    sizes = {"alpha": 16, "beta": 64}
    trace = trace_of([(START + 16, 64), (START + 80, 64)], [[0, 1]], [0])
    rows = [
        (at, kind, "__x86_indirect_thunk_rax" if name == "gamma" else name)
        for at, kind, name in text_rows({**sizes, "gamma": 48})
    ]
    found = placement_of([trace], parse_symbols(symbols(rows)))
    reasons = {function.name: function.why_not for function in found.functions}
    assert reasons["beta"] == "one with __x86_indirect_thunk_rax"
    assert {function.kind for function in found.functions if not function.movable} == {""}
    assert names(found, movable=True) == ["alpha"]


def test_a_label_that_no_compiler_would_align_so_moves_with_what_is_before() -> None:
    rows = text_rows({f"f{number}": 32 for number in range(40)})
    rows.append((START + 32 * 20 + 7, "t", "ftrace_call"))
    found = placement_of([], parse_symbols(symbols(rows)))
    assert group_of(found, "ftrace_call") == group_of(found, "f20")
    assert len({f.group for f in found.functions if f.movable}) == 40


def test_the_digest_tells_sections_and_assembler() -> None:
    digest = digest_of(
        {
            "a.c.o": {"alpha": (".text.alpha", 48, 1), "gamma": (".ref.text", 100, 2)},
            "b.S.o": {"delta": (".text", 32, 3), "epsilon": (".text", 32, 4)},
            "c.c.o": {"zeta": (".text.unlikely.zeta", 10, 5), "beta": (".text.unlikely_b", 16, 6)},
        }
    )
    rows = text_rows({**SIZES, "epsilon": 32, "zeta": 10})
    found = placement_of([], parse_symbols(symbols(rows)), digest=digest)
    kinds = {function.name: function.kind for function in found.functions if function.movable}
    assert kinds == {
        "alpha": "main", "beta": "main", "delta": "main", "epsilon": "main", "zeta": "unlikely",
    }  # fmt: skip
    assert group_of(found, "delta") == group_of(found, "epsilon")
    assert len({f.group for f in found.functions if f.movable}) == 4
    assert found.functions[2].why_not == "in .ref.text"


def test_labels_that_no_object_names_are_of_the_assembler_before_them() -> None:
    sections = {"beta": (".text", 16, 1)}
    rows = text_rows({"alpha": 48, "beta": 16, "label": 16, "other": 32, "delta": 32})
    of_c = dict.fromkeys(("alpha", "delta"), (".text", 32, 2))
    digest = digest_of({"a.c.o": of_c, "b.S.o": sections})
    found = placement_of([], parse_symbols(symbols(rows)), digest=digest)
    groups = [group_of(found, name) for name in ("alpha", "beta", "label", "other", "delta")]
    assert len(set(groups)) == 3
    assert groups[1] == groups[2] == groups[3]


def test_padding_up_to_a_page_says_what_asks_for_it() -> None:
    rows = text_rows({"alpha": 48, "beta": 16})
    page = START + 4096
    end = rows.pop()
    rows = [row for row in rows if "noinstr" not in row[2] and row[2] != "do_syscall_64"]
    rows += [(page, "t", "paged"), (page + 32, "t", "gamma"), (page + 64, "t", "delta")]
    rows += [(page + 4096, "t", "at_a_page"), (page + 4112, "t", "last")]
    rows.append((end[0] + 8192, "T", "_etext"))
    sizes = {"alpha": 48, "beta": 10, "paged": 18, "gamma": 1, "at_a_page": 16, "last": 9}
    known = {"a.c.o": {name: (".text", size, 1) for name, size in sizes.items()}}
    known["b.c.o"] = {"delta": (".text", 4030, 1)}
    found = placement_of([], parse_symbols(symbols(rows)), digest=digest_of(known))
    at = {function.name: function for function in found.functions}
    assert (at["paged"].alignment, at["beta"].bytes) == (4096, 10)
    # What has as much padding and is at no page follows a function without a symbol.
    assert (at["delta"].alignment, at["gamma"].bytes, at["[after gamma]"].bytes) == (16, 1, 16)
    # What follows no padding need not ask for the page that it is at.
    assert (at["at_a_page"].alignment, at["delta"].bytes) == (16, 4030)


def test_cold_text_is_told_by_its_names_and_lack_of_alignment() -> None:
    rows: list[Row] = [(START, "T", "_stext")]
    rows += [(START + 16 * number, "t", f"f{number}") for number in range(100)]
    cold = START + 1600
    rows += [(cold + 5, "t", "helper"), (cold + 11, "t", "f1.cold"), (cold + 16, "t", "put_page")]
    rows += [(cold + 32, "t", "f2.cold.1"), (cold + 64, "T", "__noinstr_text_start")]
    rows += [(cold + 128, "T", "__noinstr_text_end"), (cold + 4096, "T", "_etext")]
    text = kernel_text(parse_symbols(kallsyms(rows)))
    unlikely = [piece.name for piece in text.pieces if piece.kind == "unlikely"]
    assert unlikely == ["helper", "f1.cold", "put_page", "f2.cold.1"]
    assert text.alignments == {"main": 16, "unlikely": 1}
    # A kernel that is built for size aligns nothing; then only the names tell.
    rows = [(address + 3, kind, name) for address, kind, name in rows]
    text = kernel_text(parse_symbols(kallsyms(rows)))
    assert text.alignments["main"] == 1
    unlikely = [piece.name for piece in text.pieces if piece.kind == "unlikely"]
    assert unlikely == ["f1.cold", "put_page", "f2.cold.1"]


def test_the_compilers_alignment_bounds_what_addresses_log() -> None:
    rows = text_rows({"one": 64, "two": 64})
    assert kernel_text(parse_symbols(symbols(rows))).alignments == {"main": 64}
    assert kernel_text(parse_symbols(symbols(rows)), alignment=16).alignments == {"main": 16}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00\x01 garbage\nzz T _stext\n",
        kallsyms([(0, "T", "_stext"), (0, "T", "alpha"), (0, "T", "_etext")]),  # not as root
        kallsyms([(START, "T", "alpha")]),
    ],
)
def test_a_kernel_without_symbols_is_refused(text: bytes) -> None:
    with pytest.raises(UserError, match="do not say where its code is") as error:
        placement_of([], parse_symbols(text))
    assert "CONFIG_KALLSYMS" in error.value.hint


def test_symbols_of_another_kernel_are_refused() -> None:
    sizes = {f"f{number}": 64 for number in range(100)}
    blocks = [(START + 64 * number, 60) for number in range(100)]
    assert placement_of([trace_of(blocks)], parse_symbols(symbols(text_rows(sizes))))
    shifted = text_rows({"new": 16, **sizes})
    with pytest.raises(UserError, match="100 executed blocks go beyond"):
        placement_of([trace_of(blocks)], parse_symbols(symbols(shifted)))
    short = [(address, 8) for address, _ in blocks]
    with pytest.raises(UserError, match="only 1 are entered at their start"):
        placement_of([trace_of(short)], parse_symbols(symbols(text_rows({"new": 16, **sizes}))))


def test_a_known_size_leaves_padding_out_and_code_without_a_symbol_alone() -> None:
    digest = digest_of(
        {"a.c.o": {name: (".text", size, 1) for name, size in {**SIZES, "gamma": 80}.items()}}
    )
    found = placement_of([], parse_symbols(symbols()), digest=digest)
    sizes = {f.name: f.bytes for f in found.functions if f.movable}
    # gamma's 32 bytes up to delta are more than aligns delta: something is there.
    assert sizes == {"alpha": 48, "beta": 16, "gamma": 80, "[after gamma]": 32, "delta": 32}
    groups = {f.group for f in found.functions if f.movable}
    assert len(groups) == len(sizes)


def merged(rows: list[Row], objects: dict[str, dict[str, tuple[str, int, int]]]) -> Placement:
    return placement_of(
        [], parse_symbols(symbols(rows)), digest=digest_of(objects), alignment=16, merged=True
    )


def test_sections_of_one_name_are_one_if_objects_were_merged() -> None:
    rows = text_rows({"low": 32, "beta": 16, "top": 32, "twin": 48, "other": 16, "single": 64})
    rows = [(at, kind, "twin" if name == "other" else name) for at, kind, name in rows]
    objects = {
        "a.S.o": {"low": (".text", 32, 1)},
        "b.S.o": {"beta": (".text", 16, 2)},
        "c.c.o": {"top": (".text", 32, 3), "twin": (".text.twin", 48, 4)},
        "d.c.o": {"twin": (".text.twin", 16, 5), "single": (".text.single", 64, 6)},
        "e.c.o": {f"f{number}": (f".text.f{number}", 16, number) for number in range(9)},
    }
    found = merged(rows, objects)
    groups = {f.name: f.group for f in found.functions if f.movable}
    assert groups["low"] == groups["beta"] == groups["top"]
    assert groups["twin"] == groups["twin#2"]
    assert len({groups[name] for name in ("low", "twin", "single")}) == 3
    # Without sections of their own, functions are not parted by any relink: all may move.
    del objects["e.c.o"]
    found = merged(rows, objects)
    assert len({group_of(found, name) for name in groups}) == len(groups)


@pytest.mark.parametrize(
    ("beta", "gamma", "expected"),
    [
        (48, 16, [("[after alpha]", "beta"), ("[after gamma]", "gamma")]),
        # Each has one weak one: what is between them is not beta's.
        (16, 64, [("[after alpha]", "beta"), ("[after beta]", "gamma")]),
    ],
)
def test_a_weak_functions_code_goes_with_the_strong_one_if_objects_were_merged(
    beta: int, gamma: int, expected: list[tuple[str, str]]
) -> None:
    assert_together(16, beta, gamma, expected, ["alpha", "delta"])


def test_what_can_be_of_one_function_only_is_told_first() -> None:
    both = [("beta", "[after beta]"), ("gamma", "[after gamma]")]
    assert_together(32, 16, 16, both, ["alpha", "delta"])


def test_what_can_be_of_either_is_of_what_follows() -> None:
    assert_together(32, 16, 64, [("[after beta]", "gamma")], ["alpha", "beta", "delta"])


def assert_together(
    alpha: int, beta: int, gamma: int, expected: list[tuple[str, str]], alone: list[str]
) -> None:
    """Two objects have beta, and gamma; sizes of the functions that have names."""
    rows = text_rows({"alpha": 32, "beta": 48, "gamma": 64, "delta": 32})
    sizes = {"alpha": alpha, "beta": beta, "gamma": gamma, "delta": 32}
    objects = {
        "a.c.o": {name: (f".text.{name}", size, 1) for name, size in sizes.items()},
        "weak.c.o": {name: (f".text.{name}", 8, 2) for name in ("beta", "gamma")},
        "e.c.o": {f"f{number}": (f".text.f{number}", 16, number) for number in range(9)},
    }
    of = {f.name: f.group for f in merged(rows, objects).functions if f.movable}
    together = {frozenset(n for n, g in of.items() if g == group) for group in of.values()}
    assert together == {frozenset(one) for one in (*expected, *([name] for name in alone))}


def test_a_group_has_the_alignment_that_any_of_it_asks_for() -> None:
    page = START + 4096
    rows: list[Row] = [(START, "T", "_stext"), (START, "t", "low"), (page, "t", "paged")]
    rows += [(page + 64, "t", "beta"), (page + 128, "t", "gamma"), (page + 4096, "T", "_etext")]
    objects = {
        "a.S.o": {"low": (".text", 60, 1), "paged": (".text", 60, 2)},
        "b.c.o": {name: (f".text.{name}", 60, 3) for name in ("beta", "gamma")},
        "e.c.o": {f"f{number}": (f".text.f{number}", 16, number) for number in range(9)},
    }
    assert START % 4096 == 0
    (part,) = merged(rows, objects).ranges
    assert part.alignments.tolist() == [4096, 16, 16]


def test_what_stays_ends_before_the_padding_of_what_asks_for_a_page() -> None:
    page = START + 4096
    rows: list[Row] = [(START, "T", "_stext"), (START, "T", "startup_64"), (page, "t", "first")]
    rows += [(page + 64, "t", "second"), (page + 128, "t", "third"), (page + 4096, "T", "_etext")]
    known = dict.fromkeys(("first", "second", "third"), (".text", 60, 1))
    digest = digest_of({"a.c.o": {"startup_64": (".head.text", 200, 1), **known}})
    found = placement_of([], parse_symbols(symbols(rows)), digest=digest)
    at = {f.name: f for f in found.functions}
    assert (at["startup_64"].bytes, at["first"].alignment) == (200, 4096)
    (part,) = found.ranges
    assert part.alignments.tolist() == [4096, 64, 64]
    layout = ordered(found, ["second"])[0].tolist()
    where = {f.name: start - START for f, start in zip(found.functions, layout, strict=True)}
    assert where["second"] == 256
    assert (where["first"], where["third"]) == (4096, 4160)


def test_assembler_is_aligned_where_the_compiler_aligns_nothing() -> None:
    rows = text_rows({f"f{number}": 17 for number in range(1, 60)}, alignment=1)
    sections = {f"f{number}": (".text", 17, number) for number in (16, 17, 18)}
    digest = digest_of({"lib.S.o": sections})
    found = placement_of([], parse_symbols(symbols(rows)), digest=digest)
    at = {function.name: function for function in found.functions}
    assert at["f1"].alignment == at["f15"].alignment == 1
    assert (at["f17"].address - START) % 16 == 0
    assert at["f17"].alignment == 16
    assert at["f16"].group == at["f17"].group == at["f18"].group != at["f15"].group


def test_symbols_of_a_vmlinux_number_functions_by_the_order_of_objects(tmp_path: Path) -> None:
    source = tmp_path / "two.s"
    source.write_text(
        """
        .text
        .globl _stext, _etext
        _stext:
        .type same, @function
        same: ret
        .balign 16
        .globl main
        .type main, @function
        main: ret
        .balign 16
        _etext:
        .data
        here: .quad 0
        """
    )
    image = tmp_path / "two.o"
    subprocess.run(["as", "-o", image, source], check=True)
    found = {name: (address, kind) for address, kind, name, _ in vmlinux_symbols(image)}
    assert found == {
        "_stext": (0, "T"), "same": (0, "t"), "main": (16, "T"), "_etext": (32, "T"),
        "here": (0, "d"),
    }  # fmt: skip
    rows = [
        (START + 64, "t", "same"), (START, "T", "_stext"), (START, "t", "same"),
        (START + 128, "T", "_etext"),
    ]  # fmt: skip
    symbols_by_object = [(at, kind, name, "kernel") for at, kind, name in rows]
    assert [piece.name for piece in kernel_text(symbols_by_object).pieces] == ["same#2", "same"]
    with pytest.raises(LabError, match="is no ELF file"):
        vmlinux_symbols(source)


def test_a_module_has_no_log_in_what_the_kernel_holds() -> None:
    digest = digest_of(
        {"a.c.o": {"alpha": (".ref.text", 48, 1)}, "b.c.o": {"alpha": (".text", 8, 2)}}
    )
    module = msgspec.structs.replace(digest.objects["b.c.o"], module="nic")
    alone = msgspec.structs.replace(digest, objects={**digest.objects, "b.c.o": module})
    for held, moves in ((digest, True), (alone, False)):
        found = placement_of([], parse_symbols(symbols()), digest=held)
        assert found.functions[0].movable is moves


def test_the_head_and_labels_are_known_by_their_names() -> None:
    rows = text_rows({"early": 64, "startup_64": 64, "alpha": 64, "beta": 64})
    rows.append((START + 150, "t", ".Lloop"))
    found = placement_of([], parse_symbols(symbols(rows)))
    reasons = {function.name: function.why_not for function in found.functions[:4]}
    assert reasons == {"early": "in the head", "startup_64": "in the head", "alpha": "", "beta": ""}
    assert found.functions[2].bytes == 64


def test_code_far_after_the_last_symbol_has_no_name() -> None:
    blocks = [(MODULE + 20, 4), (MODULE + (2 << 20), 4)]
    found = placement_of([trace_of(blocks)], parse_symbols(symbols()))
    assert [found.functions[i].name for i in found.placed[0].function] == ["probe", REST]
