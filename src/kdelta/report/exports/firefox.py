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
from kdelta.report.exports.model import Export, Naming, Sums, clean, column_title, function_name

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
        "nativeSymbols": _table(0, libIndex=[], address=[], name=[], functionSize=[]),
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
    nodes = [node for top in tops for node in trees.below(top)]
    stack_of = {node: index for index, node in enumerate(nodes)}
    return stack_of, _table(
        len(nodes),
        frame=[trees.frame[node] for node in nodes],
        prefix=[stack_of.get(trees.parent[node]) for node in nodes],
    )


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
        _index(strings, function_name(frame.function) if frame.function else frame.label)
        for frame in frames
    ]
    n = len(frames)
    return {
        "frameTable": _table(
            n,
            address=-1,
            inlineDepth=0,
            category=[_category(frame) for frame in frames],
            subcategory=0,
            func=list(range(n)),
            nativeSymbol=None,
            innerWindowID=None,
            line=None,
            column=None,
        ),
        "funcTable": _table(
            n,
            name=names,
            isJS=False,
            relevantForJS=False,
            resource=resources,
            source=sources,
            lineNumber=lines,
            columnNumber=None,
        ),
        "resourceTable": _table(
            len(origins),
            lib=None,
            name=[_index(strings, clean(origin)) for origin in origins],
            host=None,
            type=_LIBRARY,
        ),
        "sources": _table(
            len(files), uuid=None, filename=[_index(strings, clean(file)) for file in files]
        ),
    }


def _table(length: int, **columns: Any) -> dict[str, Any]:
    """Columns of so many rows; what is no list is the same in each row."""
    lists = {
        name: one if isinstance(one, list) else [one] * length for name, one in columns.items()
    }
    return {**lists, "length": length}


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
    samples = _table(
        len(ran),
        stack=[stack_of[node] for node in ran],
        time=[at / _PER_MILLISECOND for at in before],
        weight=weight,
    )
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
        "samples": {**samples, "weightType": "samples"},
        "markers": _table(0, data=[], name=[], startTime=[], endTime=[], phase=[], category=[]),
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
