# SPDX-License-Identifier: GPL-2.0-or-later
"""The Firefox Profiler's processed profile format.

Regions are processes, and the tasks of a program in a context are a thread: one sample a stack,
whose weight is what was executed there. Its time is what was executed before, in the order of the
tree, as microseconds: the profiler has no axis without a unit.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from kdelta.counts.model import is_kernel
from kdelta.counts.profile import Profile
from kdelta.report.exports.forest import Forest, ForestFrame, forest
from kdelta.report.exports.model import Export, Naming, Sums, clean, column_title

VERSION = 60
"""Of the processed format: the first with tables that threads share. Later readers upgrade it."""

_GECKO_VERSION = 30  # of the raw format; readers of the processed one only want it to be there
_PER_MILLISECOND = 1000
_LIBRARY = 1  # a resource's type

_CATEGORIES = (
    {"name": "Other", "color": "grey", "subcategories": ["Other"]},
    {"name": "Kernel", "color": "orange", "subcategories": ["Other"]},
    {"name": "User", "color": "yellow", "subcategories": ["Other"]},
)
_OTHER, _KERNEL, _USER = range(3)


_Texts = dict[str, int]
"""Texts with their indexes."""


def _index(texts: _Texts, text: str) -> int:
    return texts.setdefault(text, len(texts))


def firefox(profiles: Sequence[Profile], naming: Naming) -> bytes:
    """The file's JSON."""
    trees = forest(profiles, naming)
    strings: _Texts = {}
    tops = [(region, top) for region in trees.roots for top in trees.programs(region)]
    stack_of, stacks = _stacks(trees, [top for _, top in tops])
    shared = {
        "stackTable": stacks,
        **_frame_tables(trees.frames, strings),
        "nativeSymbols": _table({"libIndex": [], "address": [], "name": [], "functionSize": []}, 0),
    }
    first = dict(reversed(tops))
    threads = [
        _thread(trees, top, index, stack_of, first[region] == top)
        for index, (region, top) in enumerate(tops)
    ]
    document = {
        "meta": _meta(naming, len(threads)),
        "libs": [],
        "shared": {**shared, "stringArray": list(strings)},
        "threads": threads,
    }
    return msgspec.json.encode(document) + b"\n"


def _stacks(trees: Forest, tops: Sequence[int]) -> tuple[dict[int, int], dict[str, Any]]:
    # Stacks begin with the program's frame: what is above it is told by thread and process.
    stack_of: dict[int, int] = {}
    frames: list[int] = []
    prefixes: list[int | None] = []
    for top in tops:
        for node in trees.below(top):
            stack_of[node] = len(frames)
            frames.append(trees.frame[node])
            prefixes.append(stack_of.get(trees.parent[node]))
    return stack_of, _table({"frame": frames, "prefix": prefixes}, len(frames))


def _frame_tables(frames: Sequence[ForestFrame], strings: _Texts) -> dict[str, Any]:
    """Frames, functions, resources and source files; a frame and its function have one index."""
    files: _Texts = {}
    origins: _Texts = {}
    sources = [None if frame.place is None else _index(files, frame.place[0]) for frame in frames]
    lines = [None if frame.place is None else frame.place[1] for frame in frames]
    resources = [
        _index(origins, frame.function.origin) if frame.function else -1 for frame in frames
    ]
    names = [
        _index(strings, clean(frame.function.name) if frame.function else frame.label)
        for frame in frames
    ]
    n = len(frames)
    nothing = [None] * n
    return {
        "frameTable": _table(
            {
                "address": [-1] * n,
                "inlineDepth": [0] * n,
                "category": [_category(frame) for frame in frames],
                "subcategory": [0] * n,
                "func": list(range(n)),
                "nativeSymbol": nothing,
                "innerWindowID": nothing,
                "line": nothing,
                "column": nothing,
            },
            n,
        ),
        "funcTable": _table(
            {
                "name": names,
                "isJS": [False] * n,
                "relevantForJS": [False] * n,
                "resource": resources,
                "source": sources,
                "lineNumber": lines,
                "columnNumber": nothing,
            },
            n,
        ),
        **_places(strings, origins, files),
    }


def _places(strings: _Texts, origins: _Texts, files: _Texts) -> dict[str, Any]:
    return {
        "resourceTable": _table(
            {
                "lib": [None] * len(origins),
                "name": [_index(strings, clean(origin)) for origin in origins],
                "host": [None] * len(origins),
                "type": [_LIBRARY] * len(origins),
            },
            len(origins),
        ),
        "sources": _table(
            {
                "uuid": [None] * len(files),
                "filename": [_index(strings, clean(file)) for file in files],
            },
            len(files),
        ),
    }


def _table(columns: dict[str, list[Any]], length: int) -> dict[str, Any]:
    return {**columns, "length": length}


def _category(frame: ForestFrame) -> int:
    if frame.function is None:
        return _OTHER
    return _KERNEL if is_kernel(frame.function.origin) else _USER


def _thread(
    trees: Forest, top: int, index: int, stack_of: dict[int, int], first: bool
) -> dict[str, Any]:
    region, context, program = (trees.label(node) for node in trees.path(top))
    ran = [node for node in trees.below(top) if trees.own[node]]
    weight = [trees.own[node] for node in ran]
    before = [0, *itertools.accumulate(weight)][: len(ran)]
    samples: dict[str, list[Any]] = {
        "stack": [stack_of[node] for node in ran],
        "time": [at / _PER_MILLISECOND for at in before],
        "weight": weight,
    }
    return {
        "processType": "default",
        "processName": region,
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": f"{program} ({context})",
        "isMainThread": first,
        "pid": region,
        "tid": index,
        "samples": {**_table(samples, len(ran)), "weightType": "samples"},
        "markers": _table(
            {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": []}, 0
        ),
    }


def _meta(naming: Naming, threads: int) -> dict[str, Any]:
    facts = naming.facts() | {"a sample's weight": column_title(naming.column)}
    entries = [
        {"label": label, "format": "string", "value": value} for label, value in facts.items()
    ]
    return {
        "interval": 1 / _PER_MILLISECOND,
        "startTime": 0,
        "processType": 0,
        "categories": list(_CATEGORIES),
        "product": naming.title,
        "stackwalk": 1,
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": VERSION,
        "symbolicated": True,
        "symbolicationNotSupported": True,
        "markerSchema": [],
        "importedFrom": naming.creator,
        "usesOnlyOneStackType": True,
        "sourceCodeIsNotOnSearchfox": True,
        "extra": [{"label": "kdelta", "entries": entries}],
        "keepProfileThreadOrder": True,
        "initialVisibleThreads": list(range(threads)),
    }


def read_firefox(data: bytes, naming: Naming) -> Sums:
    """The weights by process."""
    sums: Sums = Counter()
    for thread in msgspec.json.decode(data)["threads"]:
        sums[thread["pid"], naming.column] += sum(thread["samples"]["weight"])
    return sums


FIREFOX = Export(
    name="firefox",
    suffix=".firefox.json",
    summary="for the Firefox Profiler: a process for each region",
    make=firefox,
    read=read_firefox,
)
