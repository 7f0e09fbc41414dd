# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of the store's runs can be compared: the same work on the same machine."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from kdelta.spec.identity import canonical_json
from kdelta.store.model import Run

Regions = frozenset[str]


class RunGroup(msgspec.Struct, frozen=True):
    """Runs that did the same on the same machine: of these regions. `own_files`: each kernel ran
    the workload with files of its own, such as modules that are built for it.
    """

    machine: dict[str, str | int | float]
    regions: Regions
    runs: tuple[Run, ...]
    own_files: bool = False

    @property
    def kernels(self) -> frozenset[str]:
        """The identities of its kernels."""
        return frozenset(run.kernel_identity for run in self.runs)


def groups_of(runs: Iterable[Run], regions: Callable[[Run], Regions]) -> list[RunGroup]:
    """The runs in groups, those with more kernels first. `regions` tells which ones a run counted;
    it is asked once for each form of the workload.
    """
    forms: dict[tuple[bytes, str], list[Run]] = {}
    for run in runs:
        key = canonical_json(run.machine), run.workload_identity
        forms.setdefault(key, []).append(run)
    shapes: dict[str, Regions] = {}
    groups: list[RunGroup] = []
    lone: dict[tuple[bytes, Regions], list[Run]] = {}
    for (machine, form), found in forms.items():
        shape = shapes.setdefault(form, regions(found[0])) if form not in shapes else shapes[form]
        if len({run.kernel_identity for run in found}) > 1:
            groups.append(RunGroup(found[0].machine, shape, tuple(found)))
        else:
            lone.setdefault((machine, shape), []).extend(found)
    groups += [
        RunGroup(found[0].machine, shape, tuple(found), own_files=True)
        for (_, shape), found in lone.items()
    ]
    return sorted(groups, key=lambda one: (-len(one.kernels), -len(one.regions)))


def worth_showing(groups: Sequence[RunGroup], operations: Sequence[str]) -> list[RunGroup]:
    """Those that have the operations, without such as another one has all kernels and regions of:
    runs of an operation alone are for its verdicts.
    """
    having = [one for one in groups if one.regions.issuperset(operations)]
    return [one for one in having if not any(_holds(other, one) for other in having)]


def _holds(other: RunGroup, one: RunGroup) -> bool:
    return (
        other is not one
        and other.machine == one.machine
        and other.regions > one.regions
        and other.kernels >= one.kernels
    )
