# SPDX-License-Identifier: GPL-2.0-or-later
"""What crossing into the kernel costs, as JSON: document kdelta.crossing/1."""

from fractions import Fraction
from typing import Literal

import msgspec

from kdelta.infer.crossing import ArmCost, OperationCrossing, Share
from kdelta.infer.ensembles import Interval
from kdelta.report.crossing_model import CrossingArm, CrossingReport
from kdelta.report.estimate_json import JsonEstimate, Number, json_estimate, json_number
from kdelta.report.json import JsonSide, document_text, json_side
from kdelta.report.model import Facts


class JsonEnds(msgspec.Struct, frozen=True):
    """All from `low` to `high`."""

    low: float
    high: float


class JsonArm(msgspec.Struct, frozen=True):
    """An arm's kernel and runs, and what that kernel said of vulnerabilities."""

    name: str
    side: JsonSide
    vulnerabilities: dict[str, str]


class JsonArmCost(msgspec.Struct, frozen=True):
    """An iteration of an operation in an arm: instructions of the tasks' own work (user + system),
    those of interrupts and other tasks meanwhile, special instructions, and model cycles of the
    path, null without a CPU.
    """

    arm: str
    insns: JsonEstimate
    user: JsonEstimate
    system: JsonEstimate
    interrupts: JsonEstimate
    other: JsonEstimate
    string_bytes: Number
    specials: dict[str, Number]
    cycles: JsonEnds | None


class JsonShare(msgspec.Struct, frozen=True):
    """What is gained between two arms; positive is less work. of_whole: a fraction of the whole
    gain's instructions, null where that is nought.
    """

    parts: list[str]
    before: str
    after: str
    insns: Number
    user: Number
    system: Number
    of_whole: float | None
    cycles: JsonEnds | None


class JsonCrossing(msgspec.Struct, frozen=True):
    """An operation, or the total. The shares add up to the whole, null with fewer than two arms."""

    name: str
    arms: list[JsonArmCost]
    shares: list[JsonShare]
    whole: JsonShare | None


class JsonCrossingReport(msgspec.Struct, frozen=True):
    """The document. left_out: operations that are not in the total, since not every run has them.
    assumed, unpriced: ranges of prices that nobody published or measured, by special instruction.
    """

    schema: Literal["kdelta.crossing/1"]
    kdelta: str
    workload: str
    cpu: str | None
    machine: Facts
    arms: list[JsonArm]
    total: JsonCrossing
    operations: list[JsonCrossing]
    left_out: list[str]
    assumed: dict[str, JsonEnds]
    unpriced: dict[str, JsonEnds]
    unlike: list[str]
    notes: list[str]
    warnings: list[str]


def crossing_json(report: CrossingReport, version: str) -> str:
    """The document's text; `version` is kdelta's."""
    found = report.found
    return document_text(
        JsonCrossingReport(
            schema="kdelta.crossing/1",
            kdelta=version,
            workload=report.workload,
            cpu=report.cpu.name if report.cpu else None,
            machine=report.machine,
            arms=[_arm(arm) for arm in report.arms],
            total=_operation(found.total),
            operations=[_operation(one) for one in found.operations],
            left_out=list(found.left_out),
            assumed={kind: _ends(price) for kind, price in found.assumed.items()},
            unpriced={kind: _ends(price) for kind, price in found.unpriced.items()},
            unlike=[one.text for one in report.unlike],
            notes=list(report.notes),
            warnings=list(report.warnings),
        )
    )


def _arm(arm: CrossingArm) -> JsonArm:
    return JsonArm(arm.name, json_side(arm.side), arm.chose)


def _operation(one: OperationCrossing) -> JsonCrossing:
    return JsonCrossing(
        name=one.name,
        arms=[_cost(arm) for arm in one.arms],
        shares=[_share(share) for share in one.shares],
        whole=_share(one.whole) if one.whole else None,
    )


def _cost(arm: ArmCost) -> JsonArmCost:
    return JsonArmCost(
        arm=arm.arm,
        insns=json_estimate(arm.insns),
        user=json_estimate(arm.user),
        system=json_estimate(arm.kernel),
        interrupts=json_estimate(arm.interrupts),
        other=json_estimate(arm.other),
        string_bytes=json_number(arm.amounts.get("string_bytes", Fraction(0))),
        specials={kind: json_number(count) for kind, count in arm.specials.items()},
        cycles=_ends(arm.cycles) if arm.cycles else None,
    )


def _share(share: Share) -> JsonShare:
    return JsonShare(
        parts=list(share.parts),
        before=share.before,
        after=share.after,
        insns=json_number(share.insns),
        user=json_number(share.user),
        system=json_number(share.kernel),
        of_whole=None if share.of_whole is None else float(share.of_whole),
        cycles=_ends(share.cycles) if share.cycles else None,
    )


def _ends(found: Interval) -> JsonEnds:
    return JsonEnds(found.low, found.high)
