# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU's file: what is read from it, and what is reported of a wrong one."""

from pathlib import Path

import pytest

from kdelta.cpus import Cache, load_cpu
from kdelta.cpus.file import CPUFileError, decode_cpu
from kdelta.cpus.model import LineTransfer, MissPrice, Price
from kdelta.spec.errors import UserError
from tests.cpus.good_file import GOOD


def test_a_good_one() -> None:
    cpu = decode_cpu(GOOD.encode())
    assert (cpu.name, cpu.arch, cpu.frontend) == ("mine", "x86_64", "coupled")
    assert cpu.l1i == Cache(64, 8, 64)
    assert (cpu.l1d.bytes, cpu.l2.bytes) == (48 << 10, 1280 << 10)
    assert cpu.l2_shared
    assert cpu.itlb == Cache(1, 48, 2 << 20)
    assert cpu.itlb_small is None
    assert cpu.btb is not None
    assert cpu.btb.entries == 512
    assert cpu.string_bytes_per_cycle == Price(8, 32)
    assert cpu.misses["l1i"] == MissPrice(10, 14, True)
    assert cpu.specials == {"syscall": Price(20, 80), "sysret": Price(20, 80)}
    assert (cpu.qemu.cpu, cpu.qemu.append) == ("qemu64,+erms", "nopti")
    assert [path.name for path in cpu.paths] == ["strings by the byte"]


def test_each_figure_says_where_it_is_from() -> None:
    sources = decode_cpu(GOOD.encode()).sources
    assert sources["l1i"] == "Somebody, Manual, document 12, section 2"
    assert sources["l1d"] == "Somebody, Manual, document 12"
    assert sources["base"] == "assumed: two a cycle"
    assert sources["strings"] == "measured: with a loop"
    assert sources["special.sysret"] == "assumed: as others"
    assert sources["path.strings by the byte"] == "Somebody, Manual, document 12, section 9"


def test_the_same_size_without_sets() -> None:
    cache = Cache(64, 8, 64)
    assert cache.entries == 512
    assert cache.fully_associative == Cache(1, 512, 64)
    assert cache.fully_associative.bytes == cache.bytes == 32 << 10


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sets = 64\nways = 8", "sets = 48\nways = 8", r"`l1i\.sets` is 48.*no power of two"),
        ("line_bytes = 64\nsource = \"man section 2\"", "line_bytes = 48\nsource = \"man\"",
         r"`l1i\.line_bytes` is 48.*no power of two"),
        ("sets = 64\nways = 8", "sets = 0\nways = 8", r"`l1i\.sets` is 0"),
        ("bytes = 32768", "bytes = 65536", r"64 sets x 8 ways x 64 bytes are 32768 bytes, not"),
        ("ways = 8", "ways = 6", r"`l1i`: 64 sets x 6 ways x 64 bytes are 24576 bytes, not 32768"),
        ("ways = 20", "ways = 0", r"`l2\.ways` is 0"),
        ("sets = 1\nways = 48", "sets = 1\nways = 129", r"`itlb\.ways` is 129; .*from 1 to 128"),
        ("entries = 48", "entries = 64", r"`itlb`: 1 sets x 48 ways are 48 entries, not 64"),
        ("page_bytes = 2097152", "page_bytes = 3145728", r"`itlb\.page_bytes` is 3145728"),
        ("page_bytes = 2097152\n", "", r"`itlb` has no `page_bytes`"),
        ("page_bytes = 2097152", "line_bytes = 64", r"`itlb` has a `line_bytes`"),
        ("entries = 512", "entries = 500", r"`btb`: 256 sets x 2 ways are 512 entries, not 500"),
        ("bytes = 32768\n", "", r"`l1i` has no `bytes`"),
        ("ways = 12", "ways = 12\nshared = true", r"`l1d` has a `shared`"),
        ("ways = 12", "ways = 12\nlatency = 3", r"unknown field `latency`.*\$\.l1d"),
        ("[l1d]", "[l1c]", "unknown field|missing required field `l1d`"),
        ('arch = "x86_64"\n', "", "missing required field `arch`"),
        ('name = "mine"', 'name = " "', "`name` is empty"),
        ('"coupled"', '"looped"', r"\$\.frontend"),
        ("cycles_per_insn = 0.5", "cycles_per_insn = 0", r"`base\.cycles_per_insn` is 0.*positive"),
        ("cycles_per_insn = 0.5", "cycles_per_insn = nan", r"`base\.cycles_per_insn` is nan"),
        ("[8, 32]", "[0, 32]", r"`strings\.bytes_per_cycle` is 0.*positive"),
        ("[8, 32]", "[32, 8]", r"`strings\.bytes_per_cycle` is \[32.*goes from 0"),
        ("[10, 14]", "[14, 10]", r"`misses\.l1i\.cycles` is"),
        ("[10, 14]", "[-1, 10]", r"`misses\.l1i\.cycles` is"),
        ("[10, 14]", "[1, inf]", r"`misses\.l1i\.cycles` is"),
        ("[10, 14]", "[10]", r"\$\.misses"),
        ("[misses.l2]", "[misses.l3]", r"l3"),
        ("[20, 80]", "[80, 20]", r"`special\.syscall\.cycles` is"),
        ('["syscall", "sysret"]', '["syscall", "syscall"]', "`special` has 'syscall' twice"),
        ('source = "man section 2"\n', "", r"missing required field `source`.*\$\.l1i"),
        ('"man section 2"', '""', "`l1i` has no source"),
        ('"man section 2"', '"somewhere"', "`l1i`: its source 'somewhere' is none of `sources`"),
        ('"assumed: two a cycle"', '"assumed: "', "`base`: its source is 'assumed:' and says no"),
        ("[sources]\n", "[sources]\nold = \"x\"\n", "`sources.old` is the source of nothing"),
        ('flags = ["erms"]\n', "", "`path` 'strings by the byte' says nothing by which"),
        ("strings = true", "string = true", r"unknown field `string`.*\$\.path"),
        ("[qemu]", "[qemu", "line"),
    ],
)  # fmt: skip
def test_a_wrong_one_names_the_field(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    with pytest.raises(CPUFileError, match=said):
        decode_cpu(text.encode())
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=said) as raised:
        load_cpu(str(path))
    assert str(path) in raised.value.message
    assert raised.value.hint


def test_a_price_for_what_is_there_and_for_nothing_else() -> None:
    start, end = GOOD.index("[misses.btb]"), GOOD.index("[misses.l2]")
    without_price = GOOD[:start] + GOOD[end:]
    with pytest.raises(CPUFileError, match=r"`misses\.btb` is missing"):
        decode_cpu(without_price.encode())
    start, end = GOOD.index("[btb]"), GOOD.index("[base]")
    without_btb = GOOD[:start] + GOOD[end:]
    with pytest.raises(CPUFileError, match=r"`misses\.btb` is the price of something that is not"):
        decode_cpu(without_btb.encode())


def test_a_path_twice() -> None:
    path = GOOD[GOOD.index("[[path]]") :]
    with pytest.raises(CPUFileError, match="`path` has 'strings by the byte' twice"):
        decode_cpu((GOOD + path).encode())


def test_no_text_at_all() -> None:
    with pytest.raises(CPUFileError):
        decode_cpu(b"\xff\xfe")


@pytest.mark.parametrize(
    ("sets", "ways", "line_bytes"), [(3, 1, 64), (0, 1, 64), (4, 0, 64), (4, 1, 48)]
)
def test_a_cache_of_impossible_geometry(sets: int, ways: int, line_bytes: int) -> None:
    with pytest.raises(UserError, match="a cache has"):
        Cache(sets, ways, line_bytes)


TRANSFER = '[transfer]\nnear_ns = [16, 23]\nfar_ns = [84, 197]\nsource = "man section 9"\n\n'


def test_lines_take_so_long_from_cpu_to_cpu() -> None:
    cpu = decode_cpu((GOOD.replace("[qemu]", f"{TRANSFER}[qemu]")).encode())
    assert cpu.transfer == LineTransfer((16, 23), (84, 197))
    assert cpu.sources["transfer"] == "Somebody, Manual, document 12, section 9"
    assert decode_cpu(GOOD.encode()).transfer is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[16, 23]", "[23, 16]"),
        ("[84, 197]", "[8, 19]"),
        ("[84, 197]", "[-1, 197]"),
        ('source = "man section 9"', 'source = ""'),
    ],
)
def test_transfers_that_cannot_be_are_refused(old: str, new: str) -> None:
    text = GOOD.replace("[qemu]", f"{TRANSFER.replace(old, new)}[qemu]")
    with pytest.raises(CPUFileError, match="transfer"):
        decode_cpu(text.encode())
