# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile as JSON: document kdelta.profile/1."""

from typing import Literal

import msgspec

from kdelta.infer.annotate import Insn
from kdelta.infer.calls import Calls
from kdelta.infer.profile import FunctionLine, Modelled, RegionProfile, part_of, ranked
from kdelta.report.json import JsonCost, JsonRun, document_text, json_cost, json_run
from kdelta.report.profile_model import ProfileReport, ProfileViews


class JsonModelled(msgspec.Struct, frozen=True):
    """Misses by kind on a CPU, and model cycles: from `low` to `high`."""

    misses: dict[str, float]
    low: float
    high: float


class JsonProfiled(msgspec.Struct, frozen=True):
    """One function in one context of a region. part: "kernel", "modules" or "user". calls,
    inclusive: null where calls were not followed.
    """

    context: str
    part: str
    origin: str
    name: str
    cost: JsonCost
    calls: int | None
    inclusive: int | None
    modelled: JsonModelled | None


class JsonProfiledRegion(msgspec.Struct, frozen=True):
    """A region by function, those with the most instructions first; all contexts and parts."""

    name: str
    iterations: int
    functions: list[JsonProfiled]


class JsonCall(msgspec.Struct, frozen=True):
    """A node of a tree of calls, whose parent is the index of another in the list, or -1. What is
    no function has the origin "[task]". own, inclusive: instructions.
    """

    parent: int
    origin: str
    name: str
    own: int
    inclusive: int
    calls: int


class JsonCallers(msgspec.Struct, frozen=True):
    """A function and, below it, those that called it, and theirs."""

    origin: str
    name: str
    tree: list[JsonCall]


class JsonLine(msgspec.Struct, frozen=True):
    """A source line; of what no line is known of, `file` is empty and `function` is the symbol."""

    origin: str
    file: str
    line: int
    function: str
    text: str
    insns: int


class JsonInsn(msgspec.Struct, frozen=True):
    """An instruction: how often it was executed, and its source line, if known. `address` is
    hexadecimal.
    """

    address: str
    bytes: int
    executed: int
    text: str
    file: str
    line: int


class JsonAnnotated(msgspec.Struct, frozen=True):
    """A function by instruction."""

    origin: str
    name: str
    insns: list[JsonInsn]


class JsonProfile(msgspec.Struct, frozen=True):
    """The whole of `kdelta profile`. calls: what was followed: "all", "kernel" or "none". tree,
    callers, lines, annotated: as far as they were asked for; of what was selected.
    """

    schema: Literal["kdelta.profile/1"]
    kdelta: str
    run: JsonRun
    calls: str
    regions: list[JsonProfiledRegion]
    tree: list[JsonCall] | None
    callers: list[JsonCallers]
    lines: list[JsonLine] | None
    annotated: list[JsonAnnotated]
    left_out: list[str]
    notes: list[str]
    warnings: list[str]


def profile_json(report: ProfileReport, version: str) -> str:
    """The whole report; `version` is kdelta's."""
    views = report.views
    return document_text(
        JsonProfile(
            schema="kdelta.profile/1",
            kdelta=version,
            run=json_run(report.run),
            calls=report.calls,
            regions=[_region(region) for region in report.regions],
            tree=None if views.tree is None else _calls(views.tree),
            callers=[JsonCallers(*key, _calls(calls)) for key, calls in views.callers],
            lines=None if views.lines is None else _lines(views),
            annotated=[
                JsonAnnotated(*one.key, [json_insn(insn) for insn in one.insns])
                for one in views.annotated
            ],
            left_out=list(report.left_out),
            notes=list(report.notes),
            warnings=list(report.warnings),
        )
    )


def _region(region: RegionProfile) -> JsonProfiledRegion:
    functions = [_function(line) for line in ranked(region.lines)]
    return JsonProfiledRegion(region.name, region.iterations, functions)


def _function(line: FunctionLine) -> JsonProfiled:
    return JsonProfiled(
        context=line.context,
        part=part_of(line.origin).value,
        origin=line.origin,
        name=line.name,
        cost=json_cost(line.cost),
        calls=line.calls,
        inclusive=line.inclusive,
        modelled=_modelled(line.modelled) if line.modelled else None,
    )


def _calls(calls: Calls) -> list[JsonCall]:
    rows = zip(calls.parent, calls.key, calls.own, calls.inclusive, calls.calls, strict=True)
    return [JsonCall(parent, *key, *figures) for parent, key, *figures in rows]


def _lines(views: ProfileViews) -> list[JsonLine]:
    ranked_lines = sorted((views.lines or {}).items(), key=lambda item: (-item[1], item[0]))
    return [
        JsonLine(line.origin, line.file, line.line, line.function, views.texts.get(line, ""), count)
        for line, count in ranked_lines
    ]


def json_insn(insn: Insn) -> JsonInsn:
    """An instruction."""
    file, line = insn.place or ("", 0)
    return JsonInsn(f"{insn.address:x}", insn.size, insn.count, insn.text, file, line)


def _modelled(one: Modelled) -> JsonModelled:
    return JsonModelled(one.misses, one.low, one.high)
