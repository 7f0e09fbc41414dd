# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths that one of two kernels has lost in the guest, as neither would on the CPU.

QEMU's CPUs have no microcode. A mitigation that needs it is then attempted by one kernel and left
out by another, where with microcode both would execute it. Which of two kernels executes it is
found by counts; why the other does not is in its own words, or in the paths of the CPU's file.
"""

import fnmatch
import functools
from collections.abc import Iterator, Sequence
from importlib import resources

import msgspec

from kdelta.counts.model import plain_kind
from kdelta.cpus.model import CPU
from kdelta.cpus.representative import (
    NOT_AFFECTED,
    Difference,
    paths_not_taken,
    said_of,
    without_microcode,
)
from kdelta.infer.cycles.ensembles import RegionCost
from kdelta.infer.cycles.placement_model import ComparedRegion
from kdelta.infer.cycles.prices import INSNS
from kdelta.infer.effects.effects import OperationEffect, Verdict, Word, verdict_on, weighed_verdict
from kdelta.infer.effects.estimate import Estimate, Quantity, total

_DECIDED = frozenset({Word.FASTER, Word.SLOWER, Word.SAME})
_SIDES = ("base", "other")
_NAMED = 3


class Mitigation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mitigation that needs microcode, and how it shows in what is executed.

    files      of /sys/devices/system/cpu/vulnerabilities: any of them may be what it is for
    specials   special instructions that a kernel executes for nothing else
    functions  patterns (as of a shell) of functions that are executed for nothing else
    replaced   as many plain instructions stand in the place of the special ones where these are
               left out, so that the path is as long
    """

    name: str
    files: tuple[str, ...]
    source: str
    specials: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    replaced: bool = False


class _MitigationsFile(msgspec.Struct, forbid_unknown_fields=True):
    sources: dict[str, str]
    mitigation: tuple[Mitigation, ...]


class GuestFacts(msgspec.Struct, frozen=True):
    """What a kernel's guest says of itself: /proc/cpuinfo, and a line `name: words` for each file
    of /sys/devices/system/cpu/vulnerabilities.
    """

    cpuinfo: str = ""
    vulnerabilities: str = ""


class LostPath(msgspec.Struct, frozen=True):
    """A path that one kernel may have taken otherwise than on the CPU, and the other not.

    who    "base" or "other": which of them
    why    in words
    lost   it does not execute what it would; else it may also execute what it would not
    replaced  see `Mitigation`
    """

    name: str
    who: str
    why: str
    lost: bool
    specials: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    replaced: bool = False

    def text(self, who: str, names: Sequence[str]) -> str:
        """Return in words that only one kernel executes what has these names."""
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"only {who} executes {', '.join(names[:_NAMED])}{more}: {self.why}"


class OneSided(msgspec.Struct, frozen=True):
    """What of an operation one kernel executes and the other does not, for such a path.

    who       "base" or "other": which of them
    names     special instructions and functions
    insns     by what instructions the paths differ for it, an iteration, on both sides
    specials  the special instructions among them
    """

    path: LostPath
    who: str
    names: tuple[str, ...]
    insns: Quantity
    specials: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return it in words."""
        return self.path.text(self.who, self.names)


@functools.cache
def known_mitigations() -> tuple[Mitigation, ...]:
    """Return the mitigations that need microcode."""
    text = resources.files(__package__).joinpath("mitigations.toml").read_bytes()
    return msgspec.toml.decode(text, type=_MitigationsFile).mitigation


def lost_paths(cpu: CPU | None, base: GuestFacts, other: GuestFacts) -> tuple[LostPath, ...]:
    """Return the paths that one of two guests may have lost, or taken in place of the CPU's.

    cpu: whose paths these are compared with; None where the machine is no CPU in particular.
    """
    guests = dict(zip(_SIDES, (base, other), strict=True))
    found = [one for who, guest in guests.items() for one in _by_words(cpu, who, guest)]
    if cpu is not None and base.vulnerabilities and other.vulnerabilities:
        mine, theirs = (
            paths_not_taken(cpu, one.cpuinfo, one.vulnerabilities) for one in (base, other)
        )
        found += [_of_cpu("base", one) for one in _only_in(mine, theirs)]
        found += [_of_cpu("other", one) for one in _only_in(theirs, mine)]
    return tuple(found)


def one_sided(operation: OperationEffect, paths: Sequence[LostPath]) -> tuple[OneSided, ...]:
    """Return what of these paths only one of the kernels executes in an operation. Each instruction
    is in one of them at most.
    """
    found: list[OneSided] = []
    seen: set[str] = set()
    for path in paths:
        one = _one_sided(operation, path)
        if one is not None and seen.isdisjoint(one.names):
            seen.update(one.names)
            found.append(one)
    return tuple(found)


def decided_path(operation: OperationEffect, parts: Sequence[OneSided]) -> Verdict | None:
    """Return the verdict on a path that these parts decide; None where it is the same without."""
    word = operation.verdict.word
    if operation.costs is None or word not in _DECIDED or not parts:
        return None
    insns = operation.costs.insns
    for part in parts:
        insns = Quantity(_less(insns.base, part.insns.base), _less(insns.other, part.insns.other))
    lost = {kind for part in parts for kind in part.specials}
    kept = {kind: one for kind, one in operation.costs.specials.items() if kind not in lost}
    costs = msgspec.structs.replace(operation.costs, insns=insns, specials=kept)
    without = weighed_verdict(verdict_on(insns), costs).word
    return None if without is word else Verdict(Word.NOT_COMPARABLE, reason=reason(parts, without))


def region_without(region: ComparedRegion, parts: Sequence[OneSided]) -> ComparedRegion:
    """Return the region with nothing of these parts executed in either kernel."""
    return msgspec.structs.replace(
        region,
        base=_cost_without(region.base, [part.insns.base for part in parts], parts),
        other=_cost_without(region.other, [part.insns.other for part in parts], parts),
    )


def reason(parts: Sequence[OneSided], without: Word) -> str:
    """Return why a verdict that these parts decide is none; without: what it is without them."""
    return f"{'; '.join(part.text for part in parts)}; without that: {without}"


def _by_words(cpu: CPU | None, who: str, guest: GuestFacts) -> Iterator[LostPath]:
    """The mitigations that a guest says it has lost for want of microcode. What the CPU is not
    affected by it has not lost.
    """
    said = said_of(guest.vulnerabilities)
    spared = {
        name
        for path in (cpu.paths if cpu else ())
        for name, words in path.mitigations.items()
        if words == NOT_AFFECTED
    }
    for one in known_mitigations():
        lost = {name: without_microcode(said.get(name, "")) for name in one.files}
        words = [f"{name}: {part}" for name, part in lost.items() if part and name not in spared]
        if words:
            yield LostPath(
                one.name,
                who,
                f"{who} does without for want of microcode ({', '.join(words)})",
                lost=True,
                specials=one.specials,
                functions=one.functions,
                replaced=one.replaced,
            )


def _of_cpu(who: str, one: Difference) -> LostPath:
    """A path of the CPU's file that one kernel alone took otherwise. Either may be what executes
    more: counts show which.
    """
    replaced = {kind for known in known_mitigations() if known.replaced for kind in known.specials}
    return LostPath(
        one.path.name,
        who,
        f"{who} is not as on the CPU ({', '.join(one.signs)})",
        lost=False,
        specials=one.path.specials,
        functions=one.path.functions,
        replaced=replaced.issuperset(one.path.specials),
    )


def _only_in(mine: Sequence[Difference], theirs: Sequence[Difference]) -> list[Difference]:
    """Those of a mitigation that the other kernel has not. Features of the CPU are the same for
    both kernels, even where these do not list the same.
    """
    both = {one.path.name for one in theirs}
    return [one for one in mine if one.path.mitigations and one.path.name not in both]


def _one_sided(operation: OperationEffect, path: LostPath) -> OneSided | None:
    if operation.costs is None:
        return None
    specials = {
        kind: cost
        for kind, cost in operation.costs.specials.items()
        if plain_kind(kind) in path.specials
    }
    functions = {
        one.name: one.cost
        for one in operation.functions
        if any(fnmatch.fnmatchcase(one.name, pattern) for pattern in path.functions)
    }
    for who in _SIDES:
        if path.lost and who == path.who:
            continue
        alone = {kind: cost for kind, cost in specials.items() if _only(who, [cost])}
        kinds = tuple(alone)
        if _only(who, list(functions.values())):
            alone |= {name: cost for name, cost in functions.items() if cost.moved}
        if alone:
            longer = [
                cost for name, cost in alone.items() if not path.replaced or name not in kinds
            ]
            base, other = (total((getattr(cost, side) for cost in longer), n=2) for side in _SIDES)
            return OneSided(path, who, tuple(alone), Quantity(base, other), kinds)
    return None


def _only(who: str, costs: Sequence[Quantity]) -> bool:
    """Whether that kernel executes any of this, and the other nothing in any run."""
    base, other = (any(getattr(cost, side).high > 0 for cost in costs) for side in _SIDES)
    return (base, other) == (who == "base", who == "other")


def _cost_without(
    cost: RegionCost, insns: Sequence[Estimate], parts: Sequence[OneSided]
) -> RegionCost:
    gone = {plain_kind(kind) for part in parts for kind in part.specials}
    executed = {name: one for name, one in cost.executed.items() if plain_kind(name) not in gone}
    for one in insns:
        executed[INSNS] = _less(executed[INSNS], one)
    return msgspec.structs.replace(cost, executed=executed)


def _less(whole: Estimate, part: Estimate) -> Estimate:
    """What is left of a figure without a part that is in it in each run."""
    value = whole.value - part.value
    ends = sorted((whole.low - part.low, whole.high - part.high))
    return Estimate(value, min(value, ends[0]), max(value, ends[1]), whole.n)
