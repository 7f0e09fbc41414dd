# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta calibrate without a clock: what it refuses, writes, and makes of results."""

import asyncio
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kdelta.cpus.catalog import load_cpu, user_path
from kdelta.cpus.file import decode_cpu
from kdelta.cpus.text import to_toml, write_cpu
from kdelta.host.files import sha256_file
from kdelta.host.machine import machine_hash
from kdelta.host.native import native_folder
from kdelta.infer.calibration.model import FittedPrice, LeftOut
from kdelta.spec.errors import UserError
from kdelta.spec.timings import TimedLink, TimedProgram
from kdelta.studies.calibrate.check import (
    HeldOut,
    held_out,
    linked_all,
    must_time,
    prices_of,
    run_check,
    worst_links,
)
from kdelta.studies.calibrate.host_file import host_cpu, measured_misses, write_host
from kdelta.studies.calibrate.study import (
    CalibrateRequest,
    alone,
    chosen_programs,
    links_of,
    make_bundle,
    run_calibrate,
)
from kdelta.studies.calibrate.traced import noise_of
from kdelta.studies.documents import document_text
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.progress import Silent
from kdelta.workloads.calibration import bundle
from tests.report.example_calibration import calibration_report, rows

BASE = load_cpu("icelake-server")


def link(seed: int, sha256: str = "", halves: tuple[float, float] = (100.0, 100.0)) -> TimedLink:
    return TimedLink(seed, sha256, 8, 100.0, halves, 20, 99.0, 0.8)


def program(*links: TimedLink) -> TimedProgram:
    return TimedProgram("p", "p", "fixed", 1, 1, "none", 0, 4096, ("fixed",), links)


def test_host_file_has_the_prices_and_what_they_are_by(tmp_path: Path) -> None:
    report = calibration_report()
    path = tmp_path / "host.toml"
    assert write_host(BASE, report, path, by="kdelta 1.2") == path
    cpu = decode_cpu(path.read_bytes())
    price = report.fitted.prices["l1i"]
    found = cpu.misses["l1i"]
    assert found.calibrated
    assert (found.hidden, found.exposed) == (round(price.low, 3), round(price.high, 3))
    # What no link changed was not measured, and what did not matter costs little.
    assert not cpu.misses["itlb"].calibrated
    assert measured_misses(report)["conditional"].low == 0
    assert cpu.calibration is not None
    assert cpu.calibration.host == report.machine.cpu
    assert cpu.calibration.programs == len(report.rows)
    assert cpu.calibration.rank_correlation[0] > 0.9
    assert cpu.sources["misses.l1i"].startswith("measured: by kdelta calibrate")


def test_what_a_hypervisor_does_is_no_price_of_the_core() -> None:
    report = calibration_report()
    cpu = host_cpu(BASE, report, by="kdelta")
    assert cpu is not None
    assert "cpuid" not in cpu.specials or cpu.specials["cpuid"] == BASE.specials["cpuid"]
    assert cpu.specials["lock"].high < 19.0
    assert cpu.specials.get("syscall") == BASE.specials.get("syscall")
    bytes_per_cycle = cpu.string_bytes_per_cycle
    assert bytes_per_cycle.low == pytest.approx(65536 / 4000, abs=1e-3)
    assert bytes_per_cycle.high == pytest.approx(16384 / 280, abs=1e-3)


def test_no_price_no_file(tmp_path: Path) -> None:
    report = calibration_report()
    fitted = msgspec.structs.replace(report.fitted, prices={}, between={}, left_out=())
    report = msgspec.structs.replace(report, fitted=fitted)
    assert write_host(BASE, report, tmp_path / "host.toml", by="kdelta") is None
    assert not list(tmp_path.iterdir())


def test_a_price_of_exposed_latency_stands_alone() -> None:
    """With a price of plain misses that was measured, none of what is exposed may stay."""
    base = msgspec.structs.replace(
        BASE,
        misses={**BASE.misses, "l1i-exposed": BASE.misses["l1i"]},
        sources={**BASE.sources, "misses.l1i-exposed": "assumed: so"},
    )
    cpu = host_cpu(base, calibration_report(), by="kdelta")
    assert cpu is not None
    assert "l1i-exposed" not in cpu.misses
    assert decode_cpu(to_toml(cpu).encode()) == cpu


@pytest.mark.parametrize(
    ("kept", "there"), [("", "fetch-waits"), ("fetch-windows", "fetch-windows")]
)
def test_no_window_is_paid_twice(kept: str, there: str) -> None:
    report = calibration_report()
    both = [
        LeftOut(name, 0.0, "", 0.9) for name in ("fetch-waits", "fetch-windows") if name != kept
    ]
    prices = {kept: FittedPrice(kept, 0.5, 0.2, 0.9)} if kept else {}
    fitted = msgspec.structs.replace(
        report.fitted,
        prices=report.fitted.prices | prices,
        left_out=(*report.fitted.left_out, *both),
    )
    found = measured_misses(msgspec.structs.replace(report, fitted=fitted))
    assert {kind for kind in found if kind.startswith("fetch")} == {there}
    assert "op-cache" not in found


@pytest.mark.usefixtures("own_cache")
def test_two_at_once_are_refused() -> None:
    with alone(), pytest.raises(UserError, match="another calibration is under way"), alone():
        pass
    with alone():  # it is free again
        pass


def test_links_have_to_be_those_that_were_timed(tmp_path: Path) -> None:
    path = tmp_path / "links" / "p" / "1"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a link")
    timed = program(link(1, sha256_file(path)))
    assert links_of(tmp_path, timed) == [path]
    path.write_bytes(b"another")
    with pytest.raises(UserError, match="not what was timed as p, seed 1"):
        links_of(tmp_path, timed)
    path.unlink()
    with pytest.raises(UserError, match="not what was timed"):
        links_of(tmp_path, timed)


@pytest.mark.usefixtures("own_cache")
def test_results_without_their_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "RESULTS").write_text("@results 2\n")
    request = CalibrateRequest(results=tmp_path / "RESULTS")
    with open_store() as store, pytest.raises(UserError, match="no links next to"):
        asyncio.run(run_calibrate(request, store, Silent()))


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("name", ["none", "."])
def test_results_have_to_be_a_file(name: str, tmp_path: Path) -> None:
    request = CalibrateRequest(results=tmp_path / name)
    with open_store() as store, pytest.raises(UserError, match="is no file"):
        asyncio.run(run_calibrate(request, store, Silent()))


def test_a_bundle_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(UserError, match="is not empty"):
        make_bundle(CalibrateRequest(), tmp_path, Silent())
    with pytest.raises(UserError, match="mine is no folder"):
        make_bundle(CalibrateRequest(), tmp_path / "mine", Silent())
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_quick_is_less() -> None:
    quick = chosen_programs(CalibrateRequest(quick=True))
    usual = chosen_programs(CalibrateRequest())
    assert {one.name for one in quick} < {one.name for one in usual}
    few = chosen_programs(CalibrateRequest(relinks=5))
    assert max(one.relinks for one in few) == 5
    assert len(few) == len(usual)


def test_noise_is_told_from_halves() -> None:
    halves = ((100.0, 103.0), (52.0, 50.0), (70.0, 75.0))
    links = [link(seed, "", pair) for seed, pair in enumerate(halves, 1)]
    assert noise_of(links) == pytest.approx(1.4826 * 3 / 2**0.5)


def test_noise_is_by_how_much_a_second_timing_differs() -> None:
    """Of processes that are normal, a mean for which half of them has twice the variance."""
    random = np.random.default_rng(1)
    made = [random.normal(0, 10, (2, 12)) for _ in range(4001)]
    links = [link(1, "", (float(a.mean()), float(b.mean()))) for a, b in made]
    again = [a.mean() / 2 + b.mean() / 2 for a, b in made]
    differs = float(np.std(np.array(again[1:]) - again[:-1]))
    assert noise_of(links) == pytest.approx(differs, rel=0.05)


def test_worst_links_are_those_far_from_the_prediction() -> None:
    made = rows("p", "random", 1)
    cycles = made.cycles.copy()
    cycles[4] += 900
    made = msgspec.structs.replace(made, cycles=cycles)
    functions = {"f": np.arange(12.0) - 5.5, "g": np.zeros(12)}
    prices = {"l1i": FittedPrice("l1i", 4.0, 4.0, 4.0)}
    worst = worst_links(made, prices, range(1, 13), functions)
    assert worst[0].seed == 5
    assert worst[0].measured - worst[0].predicted == pytest.approx(900, abs=60)
    assert worst[0].functions[0] == ("f", -1.5)
    assert {name for name, _ in worst[0].events} == {"l1i", "conditional"}


def test_prices_are_those_of_the_document_of_the_same_calibration(tmp_path: Path) -> None:
    report = calibration_report()
    cpu = host_cpu(BASE, report, by="kdelta")
    assert cpu is not None
    document = tmp_path / "host.json"
    by_interval = prices_of(cpu, document)
    document.write_text(document_text(report, "1"))
    assert prices_of(cpu, document) == report.fitted.prices
    document.write_text(document_text(msgspec.structs.replace(report, when="2001"), "1"))
    assert prices_of(cpu, document) == by_interval
    assert set(by_interval) == {"l1i"}
    document.write_text("{")
    with pytest.raises(UserError, match="truncated"):
        prices_of(cpu, document)
    with pytest.raises(UserError, match="were not measured"):
        prices_of(BASE, document)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nothing", "no program to be checked"),
        ("p=", "has no objects"),
        ("p=/no/such.o", "no such object"),
        ("../p=a.o", "no program to be checked"),
        ("a b=a.o", "cannot name a program"),
        ("/no/such.toml", "cannot be read"),
    ],
)
def test_what_is_no_held_out_program(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        held_out(text)


def an_object(tmp_path: Path, text: str) -> HeldOut:
    (tmp_path / "main.c").write_text(text)
    includes = [f"-I{Path(bundle.__file__).parent}", f"-I{native_folder() / 'include'}"]
    subprocess.run(
        ["gcc", "-O2", *includes, "-c", tmp_path / "main.c", "-o", tmp_path / "main.o"], check=True
    )
    return held_out(f"p={tmp_path / 'main.o'}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }', "ended with 0 and pr"),
        ("int main(void) { return 7; }", "ended with 7"),
        ('int main(void) { for (;;) __asm__ volatile(""); }', "did not end within 2 seconds"),
    ],
)
def test_a_program_that_cannot_be_timed(text: str, why: str, tmp_path: Path) -> None:
    program = an_object(tmp_path, text)
    (path,) = linked_all(program, 1, tmp_path / "links")
    with pytest.raises(UserError, match=why) as caught:
        must_time(program, path, seconds=2)
    assert "p cannot be timed: " in caught.value.message
    assert "has to end in timing_main()" in caught.value.hint


def host_of(machine: str) -> None:
    cpu = host_cpu(BASE, calibration_report(), by="kdelta")
    assert cpu is not None
    assert cpu.calibration is not None
    of = msgspec.structs.replace(cpu.calibration, machine=machine)
    write_cpu(msgspec.structs.replace(cpu, calibration=of), user_path("host"))


def check(program: HeldOut) -> None:
    request = CalibrateRequest(relinks=2, busy_ok=True)
    with open_store() as store:
        asyncio.run(run_check(request, [program], store, Silent()))


def test_prices_of_another_machine_are_not_checked(tmp_path: Path) -> None:
    host_of("77")
    with pytest.raises(UserError, match="measured on another machine"):
        check(an_object(tmp_path, "int main(void) { return 0; }"))


def test_a_check_that_fails_leaves_nothing(tmp_path: Path, own_cache: Path) -> None:
    host_of(machine_hash())
    with pytest.raises(UserError, match="p cannot be timed"):
        check(an_object(tmp_path, "int main(void) { return 0; }"))
    assert not list((own_cache / "calibration").iterdir())


def test_a_program_that_can_be_timed(tmp_path: Path) -> None:
    text = (
        '#include "timing.h"\n'
        "static void pass(unsigned int k) { (void)k; }\n"
        "int main(int argc, char **argv) { return timing_main(argc, argv, 8, pass); }\n"
    )
    program = an_object(tmp_path, text)
    (path,) = linked_all(program, 1, tmp_path / "links")
    must_time(program, path)


def test_a_held_out_program_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(
        ["gcc", "-O2", "-ffunction-sections", "-c", tmp_path / "a.c", "-o", tmp_path / "a.o"],
        check=True,
    )
    toml = tmp_path / "p.toml"
    toml.write_text('name = "p"\nobjects = ["a.o"]\narguments = ["x"]\n')
    found = held_out(str(toml))
    assert found.objects == (str(tmp_path / "a.o"),)
    links = linked_all(found, 2, tmp_path / "links")
    assert [path.name for path in links] == ["1", "2"]
    assert all(subprocess.run([path], check=False).returncode == 0 for path in links)
    toml.write_text('name = "p"\nobjects = ["a.o"]\nlibs = ["-lno-such-library"]\n')
    with pytest.raises(UserError, match="p cannot be linked"):
        linked_all(held_out(str(toml)), 1, tmp_path / "links")
    toml.write_text('name = "p"\nobjects = ["a.o"]\nflags = []\n')
    with pytest.raises(UserError, match="flags"):
        held_out(str(toml))
