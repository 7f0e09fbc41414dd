# SPDX-License-Identifier: GPL-2.0-or-later
"""How much depends on placement: of a made kernel, and of a real one; and what cannot be asked."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import Cost, Packets
from kdelta.counts.symbols import parse_symbols
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import Cache, MissPrice
from kdelta.infer.cycles.ensembles import Interval
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.measures.cycles.placement import place_traces
from kdelta.report.packets import NOT_IN_IT
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.documents import document_text
from kdelta.studies.layout.model import LayoutReport
from kdelta.studies.layout.request import LayoutRequest
from kdelta.studies.layout.study import (
    L2_IS_NOT,
    NOT_IN_THE_MODEL,
    cache_texts,
    guessed_of,
    layout_regions,
    notes_on,
    run_layout,
)
from tests.machines.bench import OLD
from tests.replay.made_kernel import START, kallsyms, text_rows, trace_of
from tests.report.shown import shown
from tests.studies.placed import KERNEL, LINE, RUN, made, made_trace, small_cpu
from tests.synthetic import own, region, run


def test_collisions_are_named_with_their_sets_and_what_they_cost() -> None:
    """Alpha and gamma share a set of a cache of two lines, as do beta and delta."""
    one = made(made_trace([0, 2, 1] * 10, [0, 0, 0] * 10))
    cpu = small_cpu(sets=2)
    (found,) = layout_regions(one, cpu, layouts=20, seed=1)
    assert (found.name, found.iterations) == ("loop", 10)
    assert found.misses["l1i"].as_linked == 2
    (collision,) = found.collisions
    assert collision.functions == ("alpha", "gamma")
    assert collision.misses == found.colliding == 2
    assert collision.sets == (0,)
    price = cpu.misses["l1i"]
    assert collision.cycles == Interval(2 * price.hidden, 2 * price.exposed)


def test_the_alignment_that_a_kernel_has_is_its_own_ensemble() -> None:
    one = made(made_trace([0, 2] * 10, [0, 0] * 10))
    (found,) = layout_regions(one, small_cpu(sets=2), layouts=50, seed=1)
    by_bytes = {row.bytes: row for row in found.aligned}
    assert list(by_bytes) == [16, 32, 64]
    assert by_bytes[64].same_order == {"l1i": 2.0, "itlb": 0.0}
    drawn = by_bytes[64].drawn["l1i"]
    assert drawn == found.misses["l1i"]
    assert drawn.least < drawn.most


def test_functions_that_are_packed_closer_take_fewer_lines() -> None:
    """Four functions of 48 bytes, none of which falls into the next: three lines, or four."""
    symbols = parse_symbols(kallsyms(text_rows(dict.fromkeys("abcd", 48), 16)))
    blocks = [(START + 48 * number, 48) for number in range(4)]
    trace = trace_of(blocks, [[0], [1], [2], [3]], [3, 2, 1, 0] * 10)
    trace = msgspec.structs.replace(trace, region="loop", iterations=10)
    counts = run(region("loop", {own("a"): Cost(40)}, 10))
    one = place_traces(KERNEL, RUN, counts, (trace,), symbols)
    cpu = msgspec.structs.replace(small_cpu(), l1i=Cache(1, 3, LINE))
    (found,) = layout_regions(one, cpu, layouts=20, seed=1)
    assert found.misses["l1i"].as_linked == 0
    assert [row.same_order["l1i"] for row in found.aligned] == [0, 4, 4]


def test_misses_by_interrupts_are_collisions_but_not_the_regions_own() -> None:
    one = made(made_trace([0, 2] * 10, [0, 1] * 10))
    (found,) = layout_regions(one, small_cpu(sets=2), layouts=5, seed=1)
    assert found.misses["l1i"].as_linked == 1
    assert found.colliding == 2


def test_caches_in_words() -> None:
    cpu = msgspec.structs.replace(load_cpu("zen2"), btb=Cache(1024, 4, 1))
    assert cache_texts(cpu) == (
        "L1I 32 KiB, 8-way, lines of 64",
        "ITLB 64 pages of 2 MiB",
        "BTB 4096 branches, 4-way",
    )
    of_data = ("L1D 32 KiB, 8-way", "DTLB 64 pages", "L2 512 KiB, 8-way")
    assert cache_texts(cpu, data=True)[-3:] == of_data


def test_a_kernel_without_symbols_is_refused() -> None:
    counts = run(region("loop", {own("a"): Cost(40)}, 10))
    trace = made_trace([0], [0])
    with pytest.raises(UserError, match="do not say where its code is"):
        place_traces(KERNEL, RUN, counts, (trace,), [(START, "t", "a", "kernel")])


def _layout(folder: Path, **more: object) -> LayoutReport:
    request = LayoutRequest(kernel=OLD, cpu=load_cpu("zen2"), operations=("open-close",), layouts=8)
    request = msgspec.structs.replace(request, **more)
    with Store.open(folder / "store") as store:
        return asyncio.run(run_layout(request, Lab(store, Silent())))


def test_what_there_is_not_is_refused_before_anything_is_obtained(
    tmp_path: Path, own_cache: Path
) -> None:
    with pytest.raises(UserError, match="workload"):
        _layout(tmp_path, workload="nonsense")
    with pytest.raises(UserError, match="getpid"):
        _layout(tmp_path, operations=("getpid",))
    small = msgspec.structs.replace(load_cpu("zen2"), l1d=Cache(64, 4, 32))
    with pytest.raises(UserError, match="lines of 32 bytes"):
        _layout(tmp_path, cpu=small, lab=LabRequest(data_lines=True))
    assert not (own_cache / "kernels").exists()


def test_a_cpu_of_another_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a CPU of arm64, and the kernel is one for x86_64"):
        _layout(tmp_path, cpu=load_cpu("cortex-a53"))


@pytest.mark.guest
@pytest.mark.slow
def test_a_real_kernel_is_run_once_and_its_shipped_layout_is_among_the_others(
    tmp_path: Path,
) -> None:
    first = _layout(tmp_path)
    (found,) = first.regions
    assert found.name == "open-close"
    assert not first.kernel.runs[0].from_store
    assert 0 < first.movable < first.executed
    assert first.alignment == 16
    misses = found.misses["l1i"]
    assert 20 < misses.least < misses.most < 1000
    assert misses.least / 2 < misses.as_linked < misses.most * 2
    assert found.aligned[0].same_order["l1i"] == misses.as_linked
    assert found.aligned[0].drawn["l1i"] == misses
    assert found.colliding >= misses.as_linked > sum(one.misses for one in found.collisions) / 2
    assert found.insns.value > 1000
    again = _layout(tmp_path)
    assert again.kernel.runs[0].from_store
    assert again.regions == first.regions
    assert "open-close" in shown("layout", again)
    assert '"kdelta.layout/2"' in document_text(again, "0")


@pytest.mark.guest
@pytest.mark.slow
def test_a_run_that_failed_has_no_regions(tmp_path: Path) -> None:
    lab = LabRequest(
        machine=msgspec.structs.replace(LabRequest().machine, append="init=/none rdinit=/none")
    )
    report = _layout(tmp_path, lab=lab)
    assert report.regions == ()
    assert report.kernel.failed
    assert ", perturbation 0: " in shown("layout", report)


def test_notes_say_what_is_not_in_the_model() -> None:
    notes = notes_on(load_cpu("zen2"), made(made_trace([0, 1], [0, 0])))
    assert any("BTB of zen2 was not published" in note for note in notes)
    assert NOT_IN_THE_MODEL in notes


def test_prices_that_nothing_measured_are_those_that_count() -> None:
    cpu = load_cpu("zen2")
    known = {"l2": MissPrice(0.5, 1, True), "l1d": MissPrice(0, 9, False)}
    cpu = msgspec.structs.replace(cpu, misses={**cpu.misses, **known})
    (plain,) = layout_regions(made(made_trace([0, 1], [0, 0])), small_cpu(), layouts=4, seed=1)
    assert guessed_of(cpu, [plain]) == ("l1i", "itlb")
    held = {"itlb": plain.misses["itlb"], "l2": plain.misses["l1i"]}
    more = msgspec.structs.replace(plain, misses=held, data={"l1d": 0.5, "dtlb": 0.0})
    assert guessed_of(cpu, [more]) == ("itlb", "l1d")
    assert guessed_of(cpu, [more, plain]) == ("l1i", "itlb", "l1d")


def test_what_is_not_in_packets_is_reported_of_packets() -> None:
    one = made(made_trace([0, 1], [0, 0]))
    assert NOT_IN_IT not in notes_on(load_cpu("zen2"), one)
    (loop,) = one.counts.regions
    counts = run(msgspec.structs.replace(loop, packets=Packets(10, 1000)))
    assert NOT_IN_IT in notes_on(load_cpu("zen2"), msgspec.structs.replace(one, counts=counts))


def test_the_l2_is_in_it_with_data_or_not_at_all() -> None:
    one = made(made_trace([0, 1], [0, 0]))
    assert L2_IS_NOT in notes_on(load_cpu("zen2"), one)
    notes = notes_on(load_cpu("zen2"), one, data=True)
    assert L2_IS_NOT not in notes
    assert any(note.endswith("physical addresses, of loop") for note in notes)
    (found,) = layout_regions(one, small_cpu(), layouts=4, seed=1, data=True)
    assert "l2" not in found.misses


@pytest.mark.guest
@pytest.mark.slow
def test_a_real_kernels_data_leaves_its_code_as_it_is(tmp_path: Path) -> None:
    code = _layout(tmp_path, operations=("read-tmpfs-64k", "mmap-touch-4k"), layouts=4)
    data = _layout(
        tmp_path,
        operations=("read-tmpfs-64k", "mmap-touch-4k"),
        layouts=4,
        lab=LabRequest(data_lines=True),
    )
    for plain, full in zip(code.regions, data.regions, strict=True):
        assert {kind: full.misses[kind] for kind in plain.misses} == plain.misses
        assert full.misses.keys() - plain.misses.keys() == {"l2", "l2_code", "l2_data"}
    read, touch = (one.misses["l2"] for one in data.regions)
    # 128 KiB are copied from and to, and the L2 has 512; pages come from all of memory.
    assert read.most < 1
    assert 0 < touch.least < 29
    text = shown("layout", data)
    assert "L2 misses of code and data" in text
    assert "(--data)" not in text
    assert "(--data)" in shown("layout", code)
