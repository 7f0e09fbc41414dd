# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU that is written to a file and read again is the same CPU."""

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.cpus import Cache, list_cpus
from kdelta.cpus.cache import Replacement
from kdelta.cpus.catalog import load_file
from kdelta.cpus.file import decode_cpu
from kdelta.cpus.front_end import FrontEnd, Predictor, RunAhead
from kdelta.cpus.model import CPU, Calibration, Core, KernelPath, MissKind, MissPrice, Price, Qemu
from kdelta.cpus.text import to_toml, write_cpu
from kdelta.spec.errors import LabError
from tests.cpus.whole_file import WHOLE

WORDS = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
SOURCES = WORDS.map(str.strip).map(lambda text: f"a document, {text}".strip()) | st.sampled_from(
    ["assumed: as others", "measured: here"]
)
NUMBERS = st.floats(0.001, 1e6)
POLICIES = st.sampled_from(get_args(Replacement))
CYCLES = st.floats(0, 1000)


@st.composite
def intervals(draw: st.DrawFn) -> tuple[float, float]:
    """A low end that is positive, and a high one."""
    ends = sorted((draw(NUMBERS), draw(NUMBERS)))
    return ends[0], ends[1]


@st.composite
def caches(draw: st.DrawFn, line_bytes: int = 64) -> Cache:
    """Any geometry."""
    return Cache(
        1 << draw(st.integers(0, 12)), draw(st.integers(1, 64)), line_bytes, draw(POLICIES)
    )


def predictors(tables: int) -> st.SearchStrategy[Predictor]:
    """With so many tagged tables at most."""
    histories = st.sets(st.integers(1, 1000), max_size=tables).map(lambda one: tuple(sorted(one)))
    sizes = st.integers(0, 16).map(lambda power: 1 << power)
    return st.builds(Predictor, sizes, sizes, st.integers(1, 16), histories)


@st.composite
def front_ends(
    draw: st.DrawFn, btb: Cache | None, cycles_per_insn: float, *, ahead: bool
) -> FrontEnd:
    """Any; ahead: of a decoupled one. btb: its first."""
    plain = caches(line_bytes=1).map(lambda one: Cache(one.sets, one.ways, 1))
    levels = (btb, *draw(st.lists(plain, max_size=1))) if btb else ()
    second = draw(CYCLES) if len(levels) > 1 else 0.0
    window = st.integers(0, 12).map(lambda power: 1 << power)
    ran = RunAhead(draw(st.integers(1, 256)), draw(CYCLES), second, draw(CYCLES))
    return FrontEnd(
        conditional=draw(st.none() | predictors(12)),
        indirect=draw(st.none() | predictors(4)),
        returns=draw(st.integers(0, 256)),
        btb=levels,
        fetch_bytes=draw(st.none() | window),
        op_cache=draw(st.none() | plain),
        next_line=draw(st.booleans()),
        run_ahead=ran if ahead else None,
        miss_cycles=draw(CYCLES),
        cycles_per_insn=cycles_per_insn,
    )


PRICES = intervals().map(lambda ends: Price(*ends))


def kinds_of(btb: object, front: FrontEnd | None) -> list[MissKind]:
    """The kinds of misses that such a CPU has."""
    kinds: list[MissKind] = ["l1i", "itlb", "l2", "l1d", "l1d-store", "l2-data"]
    kinds += ["btb"] if btb else []
    if front:
        kinds += ["l1i-exposed"]
        kinds += ["conditional"] if front.conditional else []
        kinds += ["return"] if front.returns else []
        kinds += ["fetch-waits"] if front.run_ahead and front.run_ahead.delivery_cycles else []
    return kinds


def source_fields(
    btb: object,
    front: FrontEnd | None,
    *,
    dtlb: bool,
    named: tuple[Iterable[str], Iterable[str], Iterable[str]],
) -> set[str]:
    """What of a file has a source. named: kinds of misses, special instructions and paths."""
    misses, specials, names = named
    return {
        "frontend", "l1i", "l1d", "l2", "itlb", "itlb_small", "base", "clock", "strings", "core",
        *(["btb"] if btb else []),
        *(["dtlb", "stlb"] if dtlb else []),
        *(["fetch"] if front else []),
        *(["predictor"] if front and front.conditional else []),
        *(["indirect"] if front and front.indirect else []),
        *(["returns"] if front and front.returns else []),
        *(["btb_second"] if front and len(front.btb) > 1 else []),
        *(["op_cache"] if front and front.op_cache else []),
        *(f"misses.{kind}" for kind in misses),
        *(f"special.{kind}" for kind in specials),
        *(f"path.{name}" for name in names),
    }  # fmt: skip


@st.composite
def cpus(draw: st.DrawFn) -> CPU:
    """Any CPU that a file can describe."""
    decoupled, rate = draw(st.booleans()), draw(NUMBERS)
    btb = draw(st.none() | caches(line_bytes=1))
    front = draw(st.none() | front_ends(btb, draw(st.just(rate) | NUMBERS), ahead=decoupled))
    tlb = caches(line_bytes=4096)
    misses = {
        kind: MissPrice(*draw(intervals()), draw(st.booleans())) for kind in kinds_of(btb, front)
    }
    specials = draw(st.dictionaries(WORDS, PRICES, max_size=3))
    names = draw(st.lists(WORDS, unique=True, max_size=2))
    dtlb = draw(st.none() | tlb)
    fields = source_fields(btb, front, dtlb=bool(dtlb), named=(misses, specials, names))
    texts = draw(st.lists(SOURCES, min_size=1, max_size=4))
    sources = {field: texts[at % len(texts)] for at, field in enumerate(sorted(fields))}
    if btb and front:  # one that is assumed is the front end's alone
        sources["btb"] = "measured: here"
    numbers = st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
    core = Core(sources["core"], tuple(draw(st.lists(numbers, max_size=2))), tuple(names))
    found = Calibration("2026-11-22", draw(WORDS), 3, 30, (-0.5, 0.9), draw(WORDS))
    return CPU(
        name=draw(WORDS),
        title=draw(WORDS),
        arch=draw(WORDS),
        frontend="decoupled" if decoupled else "coupled",
        l1i=draw(caches()),
        l1d=draw(caches()),
        l2=draw(caches()),
        l2_shared=draw(st.booleans()),
        itlb=draw(tlb),
        itlb_small=draw(tlb),
        btb=btb,
        cycles_per_insn=rate,
        string_bytes_per_cycle=Price(*draw(intervals())),
        misses=misses,
        specials=specials,
        qemu=Qemu(*draw(st.tuples(WORDS, st.just(""), WORDS))),
        paths=tuple(
            KernelPath(
                name, sources[f"path.{name}"], "else", foreign={name: (name, "x")}, strings=True
            )
            for name in names
        ),
        sources=sources,
        clock_mhz=draw(NUMBERS),
        sizes=draw(st.sampled_from([{}, {"l1d": (64 * 4096,)}])),
        dtlb=dtlb,
        stlb=draw(tlb) if dtlb else None,
        front_end=front,
        calibration=found if any(one.calibrated for one in misses.values()) else None,
        core=core,
    )


@settings(max_examples=40)
@given(cpus())
def test_what_is_written_is_read(cpu: CPU) -> None:
    if cpu.sizes:
        cpu = msgspec.structs.replace(cpu, l1d=Cache(64, 8, 64), sizes={"l1d": (64 * 8 * 128,)})
    assert decode_cpu(to_toml(cpu).encode()) == cpu


@pytest.mark.parametrize("cpu", list_cpus().values(), ids=lambda cpu: cpu.name)
def test_all_that_come_with_kdelta(cpu: CPU) -> None:
    assert decode_cpu(to_toml(cpu).encode()) == cpu


def test_a_file(tmp_path: Path) -> None:
    cpu = decode_cpu(WHOLE.encode())
    write_cpu(cpu, tmp_path / "folder" / "mine.toml")
    assert load_file(tmp_path / "folder" / "mine.toml") == cpu
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["mine.toml"]


def test_nothing_is_written_that_would_be_no_cpu(tmp_path: Path) -> None:
    cpu = msgspec.structs.replace(decode_cpu(WHOLE.encode()), name=" ")
    with pytest.raises(LabError, match="would be wrong: `name` is empty"):
        write_cpu(cpu, tmp_path / "mine.toml")
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match=r"file/mine\.toml cannot be written: "):
        write_cpu(decode_cpu(WHOLE.encode()), tmp_path / "file" / "mine.toml")
