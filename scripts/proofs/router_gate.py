#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Proves that `gate` tells a router's real changes from code that only moves, in any order.

    scripts/proofs/router_gate.py make FOLDER
    scripts/proofs/router_gate.py judge FOLDER --json docs/cases/router/gate.json

makes a git repository of the distribution's 6.12 source with four commits in each of their 24
orders, a branch each: two additions that no packet meets, something that each forwarded packet pays
for, and something that it no longer pays for. Then each commit is judged against the one before it,
with the default settings of `gate`, and on the router's CPU. Kernels and runs are kept:
what was interrupted goes on where it was.
"""

import argparse
import asyncio
import itertools
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec
from repository import Edit, Repository
from telling import Aloud, a_row_a_line

from kdelta.cpus.catalog import load_cpu
from kdelta.host.command import log_to_stderr
from kdelta.host.files import write_atomic
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.gate import Exit, decide
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.source import source_of
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest
from kdelta.measures.cycles.measure import cycles_of
from kdelta.spec.kernel import DebSrcSpec
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.gate.study import failures_of, judge

PACKAGE = "linux-source-6.12"
ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "src/kdelta/workloads/nat/router.config"
CPU = "cortex-a9"
WORKLOAD = "nat"
OPERATIONS = ("udp-64b", "udp-1400b")

_CHIPS = "static const struct flash_info winbond_nor_parts[] = {\n"
_TIPC = "\tcase htons(ETH_P_TIPC): {\n"
_NET = "\tnet = dev_net(skb->dev);\n\n\t/*\n\t *\tAccording to the RFC,"
_TTL = "\tiph = ip_hdr(skb);\n\n\t/* Decrease ttl after skb cow done */\n"


def _looked_at(n: int) -> str:
    """Reads a packet's first bytes once more, and drops none for what it finds."""
    looked = f"skb_checksum(skb, 0, min_t(u32, skb->len, {n}), 0)"
    return f"\tif (unlikely({looked} == (__force __wsum)~0U))\n\t\tskb->priority = 0;\n"


WASTE: Edit = ("net/ipv4/ip_forward.c", _NET, _looked_at(64) + _NET)
"""What the base has, so that a commit can take it away."""


class Plant(msgspec.Struct, frozen=True):
    """A commit. `sign`: 1 for slower, -1 for faster, 0 for code that no packet executes."""

    name: str
    subject: str
    edit: Edit
    sign: int = 0


PLANTS = (
    Plant(
        "chips",
        "mtd: spi-nor: winbond: add two chips",
        (
            "drivers/mtd/spi-nor/winbond.c",
            _CHIPS,
            _CHIPS
            + '\t{\n\t\t.id = SNOR_ID(0xef, 0x7f, 0x15),\n\t\t.name = "planted16",\n'
            + "\t\t.size = SZ_2M,\n\t\t.no_sfdp_flags = SECT_4K,\n\t}, {\n"
            + '\t\t.id = SNOR_ID(0xef, 0x7f, 0x16),\n\t\t.name = "planted32",\n'
            + "\t\t.size = SZ_4M,\n\t\t.no_sfdp_flags = SECT_4K,\n\t},\n",
        ),
    ),
    Plant(
        "dissector",
        "flow_dissector: look into loopback frames",
        (
            "net/core/flow_dissector.c",
            _TIPC,
            "\tcase htons(ETH_P_LOOPBACK): {\n\t\tstruct { __be16 skip, function; } *hdr, _hdr;\n\n"
            "\t\thdr = __skb_header_pointer(skb, nhoff, sizeof(_hdr), data, hlen, &_hdr);\n"
            "\t\tif (!hdr) {\n\t\t\tfdret = FLOW_DISSECT_RET_OUT_BAD;\n\t\t\tbreak;\n\t\t}\n"
            "\t\tnhoff += sizeof(_hdr) + ntohs(hdr->skip) % 8;\n"
            "\t\tfdret = FLOW_DISSECT_RET_OUT_GOOD;\n\t\tbreak;\n\t}\n" + _TIPC,
        ),
    ),
    Plant(
        "slower",
        "ip_forward: look at the whole header",
        ("net/ipv4/ip_forward.c", _TTL, _looked_at(128) + _TTL),
        sign=1,
    ),
    Plant(
        "faster",
        "ip_forward: no longer look at the first bytes",
        (WASTE[0], WASTE[2], WASTE[1]),
        sign=-1,
    ),
)
ALL = frozenset(plant.name for plant in PLANTS)
Step = tuple[frozenset[str], Plant]
"""What was planted before, and what is planted then."""


def tag_of(names: frozenset[str]) -> str:
    """The tag of the tree with these."""
    return "-".join(("with", *(plant.name for plant in PLANTS if plant.name in names)))


def steps() -> Iterator[Step]:
    """All that happen in any order of planting, each once."""
    for n in range(len(PLANTS)):
        for before in itertools.combinations(PLANTS, n):
            names = frozenset(plant.name for plant in before)
            yield from ((names, plant) for plant in PLANTS if plant.name not in names)


def make(folder: Path) -> None:
    """The repository: a branch for each order; the trees that they meet in have tags."""
    source = source_of(DebSrcSpec(PACKAGE), log_to_stderr)
    if isinstance(source, PatchFailure):
        sys.exit(source.detail)
    repository = Repository(folder)
    first = repository.create(source.folder / "git", source.tree)
    waste = repository.edited(source.tree, [WASTE])
    base = repository.commit(waste, "ip_forward: look at the first bytes", [first])
    repository.git("tag", tag_of(frozenset()), base)
    trees = {frozenset[str](): waste}
    for order in itertools.permutations(PLANTS):
        names, tree, last = frozenset[str](), waste, base
        for plant in order:
            tree = repository.edited(tree, [plant.edit])
            last = repository.commit(tree, plant.subject, [last])
            names |= {plant.name}
            if trees.setdefault(names, tree) != tree:
                sys.exit(f"{tag_of(names)} is not the same in all orders")
            repository.git("tag", "-f", tag_of(names), last)
        branch = "-".join(plant.name for plant in order)
        repository.git("update-ref", f"refs/heads/{branch}", last)
    print(f"{len(trees)} trees, {len(tuple(steps()))} steps between them")


class Said(msgspec.Struct, frozen=True):
    """What was reported of a region: the verdict on its path with the effect in instructions an
    iteration (value, low, high), and on its model cycles with the interval of the effect, as a
    fraction.
    """

    path: str
    insns: tuple[float, float, float]
    base_insns: float
    cycles: str = ""
    relative: tuple[float, float] | None = None


class Judgement(msgspec.Struct, frozen=True):
    """A step: `code` is gate's exit code with its own settings, `code_cpu` on the CPU."""

    before: tuple[str, ...]
    planted: str
    code: int
    code_cpu: int
    regions: dict[str, Said]

    def faults(self) -> Iterator[str]:
        """What was not told as it was planted."""
        (plant,) = [plant for plant in PLANTS if plant.name == self.planted]
        step = f"{' '.join(self.before) or 'nothing'}, then {self.planted}"
        wanted = Exit.SLOWER if plant.sign > 0 else Exit.NOT_SLOWER
        # What a change of the path does to model cycles depends on prices that were not measured.
        on_cpu = {wanted} if plant.sign >= 0 else {wanted, Exit.CANNOT_TELL}
        for code, allowed, how in (
            (self.code, {wanted}, "alone"),
            (self.code_cpu, on_cpu, f"on {CPU}"),
        ):
            if code not in allowed:
                yield f"{step}: gate {how} ended with {code}, not {int(wanted)}"
        for region, said in self.regions.items():
            if said.path != {1: Word.SLOWER, -1: Word.FASTER, 0: Word.SAME}[plant.sign]:
                yield f"{step}: {region} is {said.path} by {said.insns[0]:.1f} instructions"
            if plant.sign == 0 and said.cycles not in (Word.SAME, Word.PLACEMENT_ONLY):
                yield f"{step}: {region} is {said.cycles} in model cycles"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of the proof."""

    package: str
    config: str
    cpu: str
    workload: str
    judgements: tuple[Judgement, ...]


def _spec(folder: Path, names: frozenset[str]) -> str:
    return f"git:{folder}@{tag_of(names)} +ARCH=arm +{CONFIG}"


def _request(folder: Path, step: Step, *, on_cpu: bool) -> CompareRequest:
    before, plant = step
    return CompareRequest(
        base=_spec(folder, before),
        others=(_spec(folder, before | {plant.name}),),
        workload=WORKLOAD,
        operations=OPERATIONS,
        cpus=(load_cpu(CPU),) if on_cpu else (),
        lab=LabRequest(jobs=2),
    )


def _code(found: Sequence[Comparison], margin: Fraction) -> int:
    """As `gate` decides."""
    judged = [one for comparison in found for one in judge(comparison, margin)]
    return decide(judged, [text for one in found for text in failures_of(one)]).exit


async def judge_step(folder: Path, step: Step) -> Judgement:
    """A commit against the one before it."""
    with open_store() as store:
        plain = await run_compare(_request(folder, step, on_cpu=False), Lab(store, Aloud()))
        placed = await run_compare(_request(folder, step, on_cpu=True), Lab(store, Aloud()))
    return Judgement(
        before=tuple(plant.name for plant in PLANTS if plant.name in step[0]),
        planted=step[1].name,
        code=_code(plain, Fraction(0)),
        code_cpu=_code(placed, Fraction(DEFAULT_MARGIN).limit_denominator(1000)),
        regions=_regions(plain[0], placed[0]),
    )


def _regions(plain: Comparison, placed: Comparison) -> dict[str, Said]:
    judged = cycles_of(placed.judged)
    cycles = {one.region: one for one in judged.effects} if judged else {}
    found = {}
    for one in plain.effects.operations if plain.effects else ():
        if one.costs is None:
            continue
        effect, on_cpu = one.costs.insns.effect, cycles.get(one.name)
        relative = on_cpu.relative if on_cpu else None
        found[one.name] = Said(
            path=one.verdict.word,
            insns=(float(effect.value), float(effect.low), float(effect.high)),
            base_insns=float(one.costs.insns.base.value),
            cycles=on_cpu.verdict.word if on_cpu else "",
            relative=(relative.low, relative.high) if relative else None,
        )
    return found


def main() -> int:
    """The program; 1 if something was not told as it was planted."""
    parser = argparse.ArgumentParser(description="A router's commits, in any order, by gate.")
    parser.add_argument("what", choices=("make", "judge"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    if arguments.what == "make":
        make(folder)
        return 0
    judgements: list[Judgement] = []
    for step in steps():
        judgements.append(asyncio.run(judge_step(folder, step)))
        print(msgspec.json.encode(judgements[-1]).decode(), flush=True)
        if arguments.json:
            record = Record(
                package=PACKAGE,
                config=str(CONFIG.relative_to(ROOT)),
                cpu=CPU,
                workload=WORKLOAD,
                judgements=tuple(judgements),
            )
            write_atomic(arguments.json, a_row_a_line(record))
    faults = [fault for one in judgements for fault in one.faults()]
    print("\n".join(faults) or "everything was told as it was planted")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
