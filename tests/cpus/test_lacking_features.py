# SPDX-License-Identifier: GPL-2.0-or-later
"""How what TCG lacks is bounded: alternatives are read and applied, paths counted, records kept."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from alternatives import (
    ALWAYS,
    XENPV,
    Alternative,
    Code,
    apply,
    parse_alternatives,
    parse_kernel,
    unpacked,
)
from code_paths import EscapeError, Interval, Listing, Walk
from lacking_code import LACKING
from lacking_features import CPUS, FOLDER, Record, Row, records, with_tables

from kdelta.counts.model import plain_kind
from kdelta.spec.errors import LabError
from tests.machines.bench import NEW, kernel, made_as, regions_of

RECORDS = records()
RELEASES = ("6.1.0-56-cloud-amd64", "6.12.117+deb12-cloud-amd64")
TEXT, TABLE, NEW_CODE = 0x1000, 0x2000, 0x3000
PCID, XSAVES = 4 * 32 + 17, 10 * 32 + 3


def code_of(*places: tuple[int, str]) -> Code:
    """Code from hexadecimal bytes by address."""
    return Code([(at, bytes.fromhex(text)) for at, text in places])


def table(rows: Sequence[tuple[int, int, int, int, int, int]], layout: str) -> bytes:
    """Entries of (place, replacement, feature, flags, length, its length) as they are linked."""
    size, found = struct.calcsize(layout), b""
    for number, (place, source, feature, flags, length, new_length) in enumerate(rows):
        at = TABLE + number * size
        middle = (feature, flags) if layout.count("H") > 1 else (feature | flags << 15,)
        found += struct.pack(layout, place - at, source - at - 4, *middle, length, new_length)
    return found


@pytest.mark.parametrize("layout", ["<iiHBB", "<iiHHBB"])
def test_alternatives_are_read_in_the_layouts_of_old_and_new_kernels(layout: str) -> None:
    code = code_of((TEXT, "90" * 16), (NEW_CODE, "480fbaec3f 480fc72f"))
    rows = [
        (TEXT, NEW_CODE, PCID, 0, 5, 5),
        (TEXT + 5, NEW_CODE + 5, XSAVES, 1, 4, 4),
        (TEXT + 9, NEW_CODE + 9, PCID, 0, 2, 0),
    ]
    found = parse_alternatives(table(rows, layout), TABLE, code)
    assert [(one.address, one.feature, one.inverted) for one in found] == [
        (TEXT, PCID, False), (TEXT + 5, XSAVES, True), (TEXT + 9, PCID, False)
    ]  # fmt: skip
    assert [one.replacement.hex() for one in found] == ["480fbaec3f", "480fc72f", ""]


def test_alternatives_that_are_not_in_code_are_refused() -> None:
    rows = [(TEXT + 0x800, NEW_CODE, PCID, 0, 5, 5)]
    with pytest.raises(LabError, match="layout that is not known"):
        parse_alternatives(table(rows, "<iiHBB"), TABLE, code_of((TEXT, "90" * 16)))


def test_a_replacement_is_padded_and_its_jump_still_leads_where_it_led() -> None:
    jump = Alternative(TEXT, 7, PCID, b"\xe9" + struct.pack("<i", 0x10), NEW_CODE)
    code = jump.code()
    assert TEXT + 5 + struct.unpack_from("<i", code, 1)[0] == NEW_CODE + 5 + 0x10
    assert code[5:].hex() == "6690"
    assert jump._replace(replacement=b"").code().hex() == "0f1f8000000000"


def test_alternatives_are_applied_in_order_and_only_where_all_features_are_known() -> None:
    first = Alternative(TEXT, 1, ALWAYS, b"\xcc", NEW_CODE)
    second = first._replace(feature=PCID, replacement=b"\xc3")
    other = first._replace(address=TEXT + 1)
    unknown = other._replace(feature=XSAVES)
    inverted = first._replace(address=TEXT + 2, feature=XENPV, inverted=True)
    code = code_of((TEXT, "909090"))
    apply(code, [first, second, other, unknown, inverted], {ALWAYS: True, PCID: True, XENPV: False})
    assert code.read(TEXT, 3).hex() == "c390cc"


def span(text: str, *, join: int = 0, barred: Sequence[int] = ()) -> Interval | None:
    return Walk(Listing(code_of((TEXT, text))), barred=barred).span(TEXT, join)


def test_the_shortest_and_the_longest_path_are_counted() -> None:
    # test; je +2; two nops; ret
    assert span("85c0 7402 90 90 c3") == (3, 5)
    assert span("85c0 7402 90 90 c3", join=TEXT + 6) == (2, 4)


def test_a_loop_passes_at_most_six_times_and_once_at_least() -> None:
    # dec; jne back; ret
    assert span("ffc8 75fc c3") == (3, 13)


def test_paths_to_a_trap_and_barred_ones_do_not_count() -> None:
    # je +2; ud2; ret
    assert span("7402 0f0b c3") == (2, 2)
    assert span("7401 90 c3", barred=[TEXT + 2]) == (2, 2)
    assert span("7401 90 c3", barred=[TEXT + 3]) is None


def test_a_called_function_counts_and_one_that_drops_its_return_is_a_jump() -> None:
    # call +1; ret; nop; ret
    assert span("e801000000 c3 90 c3") == (4, 4)
    # call +1; ret; lea 8(%rsp),%rsp; ret
    assert span("e801000000 c3 488d642408 c3") == (3, 3)


def test_a_path_that_returns_before_it_reaches_the_join_is_an_error() -> None:
    with pytest.raises(EscapeError, match="returns at 0x1002"):
        span("7401 c3 90 90 c3", join=TEXT + 4)


def test_a_jump_to_an_unknown_place_is_an_error() -> None:
    with pytest.raises(LabError, match="leads to is not known"):
        span("ffe0")


def record(cpu: str, release: str) -> Record:
    (found,) = (one for one in RECORDS if (one.cpu, one.release) == (cpu, release))
    return found


def rows(cpu: str, release: str) -> dict[str, Row]:
    return {one.operation: one for one in record(cpu, release).rows}


def test_each_cpu_and_kernel_has_all_operations_and_the_readme_has_all_records() -> None:
    assert {(one.cpu, one.release) for one in RECORDS} == {(c, r) for c in CPUS for r in RELEASES}
    assert {len(one.rows) for one in RECORDS} == {44}
    text = (FOLDER / "README.md").read_text()
    assert with_tables(text, RECORDS) == text


@pytest.mark.parametrize("one", RECORDS, ids=lambda one: f"{one.cpu}-{one.release}")
def test_what_an_operation_gains_is_the_sum_over_its_places(one: Record) -> None:
    known = {site.place: site for site in one.sites}
    for row in one.rows:
        least = sum(times * known[place].least for place, times in row.times.items())
        most = sum(times * known[place].most for place, times in row.times.items())
        slack = 0.01 + 0.001 * sum(abs(known[p].least) + known[p].most for p in row.times)
        assert row.least == pytest.approx(least, abs=slack)
        assert row.most == pytest.approx(most, abs=slack)


@pytest.mark.parametrize("release", RELEASES)
def test_zen4_executes_such_code_only_where_processes_switch_or_states_are_saved(
    release: str,
) -> None:
    found = {name for name, row in rows("zen4", release).items() if row.times}
    assert found == {
        "mmap-touch-4m", "fork-exit-wait", "fork-large", "vfork-exec", "thread-create-join",
        "signal-handler", "pipe-round-trip", "unix-round-trip", "tcp-round-trip",
        "futex-ping-pong",
    }  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
def test_skylake_gains_seven_or_eight_instructions_at_each_return_to_a_program(
    release: str,
) -> None:
    found = rows("skylake-server", release)
    assert (found["getppid"].least, found["getppid"].most) == (7, 8)
    assert (found["open-close"].least, found["open-close"].most) == (14, 16)
    assert (found["page-fault"].least, found["page-fault"].most) == (7, 8)
    assert {name for name, row in found.items() if not row.times} == {
        "gettimeofday-vdso", "clock_gettime-vdso", "empty"
    }  # fmt: skip


@pytest.mark.network
def test_the_alternatives_of_a_real_kernel_are_those_that_its_source_has() -> None:
    code, found = parse_kernel(unpacked(Path(kernel(NEW).image)))
    places: dict[str, set[int]] = {name: set() for name in LACKING.values()}
    for one in found:
        if one.feature in LACKING:
            places[LACKING[one.feature]].add(one.address)
    # objdump shows 16 jumps to tests of these bits in .altinstr_aux; calling.h has 12 places more,
    # and 9 are instructions that save or restore states (XSAVEC and XSAVES share 2 of these).
    assert {name: len(held) for name, held in places.items()} == {
        "pcid": 19, "invpcid": 1, "xsavec": 3, "xsaves": 14
    }  # fmt: skip
    saves = {
        code.read(one.address, 4).hex() for one in found if one.replacement.hex() == "480fc72f"
    }
    assert saves == {"480fae27"}  # XSAVES in the place of XSAVE


@pytest.mark.guest
@pytest.mark.slow
def test_zero_as_zen4_is_confirmed_by_the_names_of_what_was_executed() -> None:
    """Without alternatives: by the functions that have them, and by instructions that the plugin
    counts by their kind.
    """
    tested = {
        "switch_mm_irqs_off", "invalidate_user_asid", "native_flush_tlb_one_user",
        "native_flush_tlb_global", "save_fpregs_to_fpstate", "restore_fpregs_from_fpstate",
        "fpu__clear_user_states", "__fpu_restore_sig",
    }  # fmt: skip
    found = regions_of("getppid", "open-close", "pipe-round-trip", where=made_as("zen4", NEW))
    plugin = {"write-cr3", "mov-cr", "invpcid", "xsave", "xrstor"}
    for name in ("getppid", "open-close"):
        assert plugin.isdisjoint(map(plain_kind, found[name].cost("own").specials))
        assert tested.isdisjoint(one.name for one in found[name].functions if one.context == "own")
    pipe = found["pipe-round-trip"]
    counted = pipe.cost("own").specials
    times = rows("zen4", RELEASES[1])["pipe-round-trip"].times
    for kind, place in (
        ("write-cr3 flush", "switch_mm_irqs_off+0xd4"),
        ("xsave", "save_fpregs_to_fpstate+0x47"),
        ("xrstor", "restore_fpregs_from_fpstate+0x49"),
    ):
        assert counted[kind] / pipe.iteration_count == pytest.approx(times[place], abs=0.01)
