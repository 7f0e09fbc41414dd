# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of a lab; a comparison of two as `compare` makes it, and what a record keeps of it."""

import asyncio
from typing import Any

import msgspec
from campaign import Aloud

from kdelta.infer.effects.by_code import by_code
from kdelta.infer.effects.effects import FIRM, OperationEffect
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.lab.lab import Lab
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare

FIRM_WORDS = frozenset(word.value for word in FIRM)


class Row(msgspec.Struct, frozen=True):
    """An operation: the verdict; instructions an iteration of the base, and their difference; how
    many runs of both sides these are from; and what its code costs more, as of `by_code`.
    """

    operation: str
    word: str
    reason: str
    base: float
    diff: float
    low: float
    high: float
    n: tuple[int, int]
    code: float = 0.0


def kernel_of(lab: Lab, spec: str) -> Kernel:
    """Return the kernel of a spec; raises LabError if there is none."""
    found = lab.kernel(spec)
    if isinstance(found, NoKernel):
        raise LabError(f"cannot get {spec}: {found.text}")
    return found


def obtained(spec: str) -> Kernel:
    """Return the kernel of a spec, without a lab; raises LabError if there is none."""
    found = obtain(parse_kernel_spec(spec), print)
    if isinstance(found, NoKernel):
        raise LabError(f"cannot get {spec}: {found.text}")
    return found


def compared(store: Store, base: str, other: str, **request: Any) -> Comparison:
    """Compare two kernel specs; raises LabError if one side did not run."""
    asked = CompareRequest(base=base, others=(other,), **request)
    (found,) = asyncio.run(run_compare(asked, Lab(store, Aloud())))
    if found.effects is None:
        raise LabError(f"{other}: one side did not run; kdelta runs lists its runs")
    return found


def effects_of(found: Comparison) -> tuple[OperationEffect, ...]:
    """Return the effects of a comparison whose sides ran."""
    assert found.effects is not None
    return found.effects.operations


def row_of(one: OperationEffect) -> Row:
    """Return what is kept of an operation; raises LabError if it is not comparable."""
    if one.costs is None:
        raise LabError(f"{one.name} is not comparable: {one.verdict.reason}")
    insns = one.costs.insns
    figures = (insns.base.value, insns.effect.value, insns.effect.low, insns.effect.high)
    base, diff, low, high = (round(float(figure), 4) for figure in figures)
    n = (insns.base.n, insns.other.n)
    code = float(sum(row.cost.effect.value for row in by_code(one)))
    word, reason = one.verdict.word.value, one.verdict.reason
    return Row(one.name, word, reason, base, diff, low, high, n, code)


def qemu_of(found: Comparison) -> str:
    """Return the version of the QEMU that ran both sides."""
    return str(found.base.done[0].run.machine["qemu"])
