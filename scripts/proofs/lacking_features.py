#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Bounds what features of the CPU that QEMU can neither emulate nor be made to have would change.

    scripts/proofs/lacking_features.py

Real CPUs have PCID, INVPCID and XSAVES, and TCG has not. For each operation of `syscalls`, on two
kernels as two CPUs, a run says how often an iteration executes code that depends on them: what the
kernel replaces by its alternatives, and tests of boot_cpu_data and cpu_info. Where it does, the
paths that the real CPU can take instead, to where they meet the executed one again, have a shortest
and a longest; both are counted in the kernel's code, made as it would be on that CPU.

There is one record for each CPU and kernel in docs/cases/forced/lacking, with a row for each
operation; those that are there are not made again. The tables are put into the README.md there.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from code_paths import EscapeError  # noqa: E402
from lacking_code import TESTED, Kernel, read_run, tests  # noqa: E402
from round_trips import markdown  # noqa: E402
from telling import a_row_a_line  # noqa: E402

from kdelta.counts.raw import RawRegion  # noqa: E402
from kdelta.host.files import write_atomic  # noqa: E402
from kdelta.spec.errors import LabError  # noqa: E402
from tests.machines.bench import NEW, OLD, kernel, made_as, run_job, syscalls_job  # noqa: E402

FOLDER = ROOT / "docs/cases/forced/lacking"
SPECS, CPUS = (OLD, NEW), ("zen4", "skylake-server")

_SECONDS = 600.0
_SMALLER_BYTES = 2696 - 840
"""How much smaller XSAVES makes the state with AVX and PKRU (Intel SDM, volume 1, 13.4), by the
offset of the latter. That of a real CPU has parts between these, and becomes less smaller."""
_INSNS_OF_32_BYTES = 12
"""Of the loop in memcpy_orig, arch/x86/lib/memcpy_64.S."""


class Site(msgspec.Struct, frozen=True):
    """Code that depends on a feature. least, most: what one execution of it gains, in instructions,
    on a CPU that has all of them; without the sites that it passes on its way, which are `within`.
    """

    place: str
    feature: str
    least: int
    most: int
    within: tuple[str, ...] = ()


class Row(msgspec.Struct, frozen=True):
    """An operation: an iteration's instructions, and what it gains. times: by site, how often an
    iteration executes it on its own, not within another one.
    """

    operation: str
    insns: float
    least: float
    most: float
    times: dict[str, float] = {}


class Record(msgspec.Struct, frozen=True):
    """A CPU and a kernel. All figures are of the tasks' own work."""

    cpu: str
    release: str
    entries: int
    sites: tuple[Site, ...]
    rows: tuple[Row, ...]


def find_sites(known: Kernel) -> dict[int, Site]:
    """What was executed that depends on such a feature, by address."""
    features = {place: one.feature for place, one in known.replaced.items()}
    features.update(tests(known))
    executed = {
        place: TESTED[one] for place, one in features.items() if place in known.executed.places
    }
    return {**{place: _site(known, place, executed) for place in executed}, **_copies(known)}


def _copies(known: Kernel) -> dict[int, Site]:
    """Where a task is copied with its vector state, if that is a loop: XSAVES makes it smaller."""
    names, executed = known.run.names, known.executed.places
    if not {names["arch_dup_task_struct"], names["memcpy_orig"]} <= executed:
        return {}
    site = Site("arch_dup_task_struct", "xsaves", -_SMALLER_BYTES // 32 * _INSNS_OF_32_BYTES, 0)
    return {names["arch_dup_task_struct"]: site}


def _site(known: Kernel, place: int, features: Mapping[int, str]) -> Site:
    one = known.replaced.get(place)
    join = 0
    if one is not None:
        join = _join(known, place) if known.emulated.at(place).kind == "jmp" else place + one.length
    emulated = known.walk(is_real=False)
    before, after = emulated.span(place, join), known.walk(is_real=True).span(place, join)
    if before is None or after is None:
        raise LabError(f"no path leads on from {known.place(place)}")
    within = sorted(emulated.passed & features.keys() - {place})
    for other in within:
        if known.walk(is_real=False, barred=[other]).span(place, join):
            raise LabError(f"not each path from {known.place(place)} has {known.place(other)}")
    gained = after - before
    names = tuple(known.place(other) for other in within)
    return Site(known.place(place), features[place], gained.least, gained.most, names)


def _join(known: Kernel, place: int) -> int:
    """The first address that all executed paths pass, and all that the real CPU can take."""
    for candidate in _executed_after(known, place):
        try:
            walks = [known.walk(is_real=is_real) for is_real in (False, True)]
            if all(walk.span(place, candidate, is_flat=True) for walk in walks):
                return candidate
        except EscapeError:
            continue
    raise LabError(f"paths from {known.place(place)} do not meet again")


def _executed_after(known: Kernel, place: int) -> Iterator[int]:
    """Addresses that were executed after that one within its function, the nearest first."""
    seen, pending = {place}, [place]
    for at in pending:
        insn = known.emulated.at(at)
        ways = {"jmp": [insn.target], "return": []}.get(insn.kind, [insn.after])
        ways += [insn.target] if insn.kind not in ("", "jmp", "call", "return") else []
        for way in ways:
            if way in known.executed.places and way not in seen:
                seen.add(way)
                pending.append(way)
                yield way


def row(known: Kernel, region: RawRegion, sites: Mapping[int, Site]) -> Row:
    """What the CPU's features change in an operation."""
    passes = max(1, len(region.iterations) + region.iterations_lost)
    left = {one.place: known.executed.times(region, place) for place, one in sites.items()}
    for one in sorted(sites.values(), key=lambda one: -len(one.within)):
        for inner in one.within:
            left[inner] -= left[one.place]
    if min(left.values(), default=0) < 0:
        raise LabError(f"{region.name}: {left}: a site is executed less often than what passes it")
    gained = [(left[one.place], one) for one in sites.values()]
    return Row(
        operation=region.name,
        insns=round(int(region.whole[0] + region.whole[1]) / passes, 2),
        least=round(sum(times * one.least for times, one in gained) / passes, 2),
        most=round(sum(times * one.most for times, one in gained) / passes, 2),
        times={one.place: round(times / passes, 3) for times, one in gained if times},
    )


def trial(cpu: str, spec: str) -> Record:
    """Runs all operations as that CPU on that kernel."""
    run = read_run(run_job(syscalls_job("--clock"), made_as(cpu, spec), seconds=_SECONDS))
    return bounded(cpu, kernel(spec).release, Kernel(Path(kernel(spec).image), run))


def bounded(cpu: str, release: str, known: Kernel) -> Record:
    """What a run says of each of its operations."""
    sites = find_sites(known)
    return Record(
        cpu=cpu,
        release=release,
        entries=sum(one.address in known.replaced for one in known.alternatives),
        sites=tuple(sites[place] for place in sorted(sites)),
        rows=tuple(row(known, region, sites) for region in known.run.raw.regions),
    )


def records() -> list[Record]:
    """What docs/cases/forced/lacking keeps."""
    files = sorted(FOLDER.glob("*.json"))
    return [msgspec.json.decode(file.read_bytes(), type=Record) for file in files]


def _signed(least: float, most: float, form: str) -> str:
    low, high = f"{least:{form}}", f"{most:{form}}"
    return low if low == high else f"{low} to {high}"


def _cell(one: Row) -> str:
    if not one.times:
        return "0"
    if one.least == one.most == 0:
        return "0, by as many instructions"
    part = _signed(100 * one.least / one.insns, 100 * one.most / one.insns, "+.2f")
    return f"{_signed(one.least, one.most, '+,.0f')} ({part} %)"


def tables(found: Sequence[Record]) -> str:
    """How many operations are not changed, each operation that is, and the code that changes it."""
    heads = ("CPU", "kernel", "operations", "do not execute any", "0, by as many", "changed by")
    counted = []
    for one in found:
        zero = sum(not row.times for row in one.rows)
        same = sum(bool(row.times) and row.least == row.most == 0 for row in one.rows)
        least = min(100 * row.least / row.insns for row in one.rows)
        most = max(100 * row.most / row.insns for row in one.rows)
        figures = (str(len(one.rows)), str(zero), str(same), f"{least:+.2f} to {most:+.2f} %")
        counted.append((one.cpu, one.release, *figures))
    names = list(dict.fromkeys(row.operation for one in found for row in one.rows))
    by_name = [{row.operation: row for row in one.rows} for one in found]
    cells = [(name, *(_cell(rows[name]) for rows in by_name)) for name in names]
    changed = [cell for cell in cells if set(cell[1:]) != {"0"}]
    sites = [
        (one.cpu, one.release, site.place, site.feature, _signed(site.least, site.most, "+d"))
        for one in found
        for site in one.sites
    ]
    parts = (
        ("How many", heads, counted),
        ("Operations", ("operation", *(f"{one.cpu}, {one.release}" for one in found)), changed),
        ("Code", ("CPU", "kernel", "place", "feature", "one execution gains"), sites),
    )
    return "\n\n".join(f"## {title}\n\n{markdown(top, rows)}" for title, top, rows in parts)


def with_tables(text: str, found: Sequence[Record]) -> str:
    """The README's text with the tables of these records after its mark."""
    head, mark, _ = text.partition("<!-- tables -->\n")
    return f"{head}{mark}\n{tables(found)}\n"


def main() -> None:
    """Makes the records that are missing, and the tables."""
    for cpu in CPUS:
        for spec in SPECS:
            path = FOLDER / f"{cpu}-{kernel(spec).release}.json"
            if not path.exists():
                write_atomic(path, a_row_a_line(trial(cpu, spec)))
                print(path.stem, flush=True)
    readme = FOLDER / "README.md"
    readme.write_text(with_tables(readme.read_text(), records()))


if __name__ == "__main__":
    main()
