# SPDX-License-Identifier: GPL-2.0-or-later
"""The Firefox Profiler's processed profile format.

Regions are processes, and the tasks of a program in a context are a thread: one sample a stack,
whose weight is what was executed there. Its time is what was executed before, in the order of the
tree, as microseconds: the profiler has no axis without a unit.
"""

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


class _Table:
    """Texts with their indexes."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self.index.setdefault(text, len(self.index))


def firefox(profiles: Sequence[Profile], naming: Naming) -> bytes:
    """The file's JSON."""
    trees = forest(profiles, naming)
    strings = _Table()
    tops = [
        (region, top)
        for region in trees.roots
        for context in trees.children[region]
        for top in trees.children[context]
    ]
    stack_of, stacks = _stacks(trees, [top for _, top in tops])
    shared = {
        "stackTable": stacks,
        **_frame_tables(trees.frames, strings),
        "nativeSymbols": _table({"libIndex": [], "address": [], "name": [], "functionSize": []}, 0),
    }
    threads = []
    for index, (region, top) in enumerate(tops):
        first = index == 0 or tops[index - 1][0] != region
        threads.append(_thread(trees, top, index, stack_of, first))
    document = {
        "meta": _meta(naming, len(threads)),
        "libs": [],
        "shared": {**shared, "stringArray": list(strings.index)},
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


def _frame_tables(frames: Sequence[ForestFrame], strings: _Table) -> dict[str, Any]:
    """Frames, functions, resources and source files; a frame and its function have one index."""
    files, origins = _Table(), _Table()
    sources = [None if frame.place is None else files.of(frame.place[0]) for frame in frames]
    lines = [None if frame.place is None else frame.place[1] for frame in frames]
    resources = [origins.of(frame.function.origin) if frame.function else -1 for frame in frames]
    names = [
        strings.of(clean(frame.function.name) if frame.function else frame.label)
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


def _places(strings: _Table, origins: _Table, files: _Table) -> dict[str, Any]:
    return {
        "resourceTable": _table(
            {
                "lib": [None] * len(origins.index),
                "name": [strings.of(clean(origin)) for origin in origins.index],
                "host": [None] * len(origins.index),
                "type": [_LIBRARY] * len(origins.index),
            },
            len(origins.index),
        ),
        "sources": _table(
            {
                "uuid": [None] * len(files.index),
                "filename": [strings.of(clean(file)) for file in files.index],
            },
            len(files.index),
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
    stack, weight, time = [], [], []
    at = 0
    for node in trees.below(top):
        if trees.own[node]:
            stack.append(stack_of[node])
            weight.append(trees.own[node])
            time.append(at / _PER_MILLISECOND)
            at += trees.own[node]
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
        "samples": {
            **_table({"stack": stack, "time": time, "weight": weight}, len(stack)),
            "weightType": "samples",
        },
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
    sums: Sums = {}
    for thread in msgspec.json.decode(data)["threads"]:
        key = (thread["pid"], naming.column)
        sums[key] = sums.get(key, 0) + sum(thread["samples"]["weight"])
    return sums


FIREFOX = Export(
    name="firefox",
    suffix=".firefox.json",
    summary="for the Firefox Profiler: a process for each region",
    make=firefox,
    read=read_firefox,
)
