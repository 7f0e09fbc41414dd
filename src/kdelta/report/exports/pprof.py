# SPDX-License-Identifier: GPL-2.0-or-later
"""pprof's gzipped profile.proto: every column, with region, context and task as labels.

A sample is a node of the tree of calls; where the source is known, a line of one.
"""

import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kdelta.counts.model import CONTEXTS, KERNEL
from kdelta.counts.profile import CostColumns, Profile, ProfiledFunction
from kdelta.counts.source_lines import Frame
from kdelta.report.exports.model import (
    Export,
    Naming,
    Sums,
    clean,
    columns_of,
    function_name,
    matrix,
)
from kdelta.report.exports.nodes import Nodes, function_places, nodes_of
from kdelta.report.exports.pprof_messages import PROFILE

_TYPES = {"insns": "instructions"}
_REGION = "region"


def pprof(profiles: Sequence[Profile], naming: Naming) -> bytes:
    """The file, compressed."""
    maker = _PprofMaker(naming, columns_of(profiles))
    # Readers name the file after its first mapping.
    for function in (one for profile in profiles for one in profile.functions):
        if function.origin == KERNEL:
            maker.mapping(KERNEL, function.address)
    for profile in profiles:
        maker.add(profile)
    data = maker.finished().SerializeToString(deterministic=True)
    return gzip.compress(data, compresslevel=6, mtime=0)


class _PprofMaker:
    """Fills a Profile message; ids are indexes plus one, since 0 is none."""

    def __init__(self, naming: Naming, columns: Sequence[str]) -> None:
        self.naming, self.columns = naming, columns
        self.message = PROFILE()
        self.texts = {"": 0}
        self.mappings: dict[str, Any] = {}
        self.functions: dict[tuple[str, str, str], int] = {}
        self.locations: dict[tuple[ProfiledFunction, int], int] = {}
        for column in columns:
            unit = "bytes" if column == "string-bytes" else "count"
            kind = self.text(_TYPES.get(column, column))
            self.message.sample_type.add(type=kind, unit=self.text(unit))
        self.message.default_sample_type = self.text(_TYPES.get(naming.column, naming.column))
        for name, value in {"made by": naming.creator, **naming.facts()}.items():
            self.message.comment.append(self.text(f"{name}: {value}"))

    def text(self, text: str) -> int:
        """The index of a string."""
        return self.texts.setdefault(text, len(self.texts))

    def function(self, origin: str, name: str, place: tuple[str, int] | None) -> int:
        """The id of a function; what is known of its place when it is first met is kept."""
        key = (origin, name, place[0] if place else "")
        found = self.functions.setdefault(key, len(self.functions) + 1)
        if found > len(self.message.function):
            text = self.text(clean(name) or "[unnamed]")
            self.message.function.add(
                id=found,
                name=text,
                system_name=text,
                filename=self.text(clean(place[0])) if place else 0,
                start_line=place[1] if place else 0,
            )
        return found

    def location(
        self, function: ProfiledFunction, place: tuple[str, int] | None, address: int
    ) -> int:
        """The id of an address in a function that begins at `place`."""
        found = self.locations.setdefault((function, address), len(self.locations) + 1)
        if found > len(self.message.location):
            mapping = self.mapping(function.origin, address)
            one = self.message.location.add(id=found, mapping_id=mapping, address=address)
            frames = self.naming.lines.at(function.origin, address)
            for inlined in frames[:-1]:
                index = self.function(function.origin, inlined.function, (inlined.file, 0))
                one.line.add(function_id=index, line=inlined.line)
            index = self.function(function.origin, function_name(function), place)
            one.line.add(function_id=index, line=frames[-1].line if frames else 0)
        return found

    def mapping(self, origin: str, address: int) -> int:
        """The id of an origin's mapping, which an address of it widens."""
        if origin not in self.mappings:
            self.mappings[origin] = self.message.mapping.add(
                id=len(self.mappings) + 1,
                memory_start=address,
                memory_limit=address + 1,
                filename=self.text(clean(origin)),
                has_functions=True,
                has_filenames=bool(self.naming.lines),
                has_line_numbers=bool(self.naming.lines),
                has_inline_frames=bool(self.naming.lines),
            )
        found = self.mappings[origin]
        found.memory_start = min(found.memory_start, address)
        found.memory_limit = max(found.memory_limit, address + 1)
        return int(found.id)

    def add(self, profile: Profile) -> None:
        tree, functions = nodes_of(profile), profile.functions
        places = function_places(profile, self.naming.lines)
        callers: list[tuple[int, ...]] = []
        for parent, site in zip(tree.parent.tolist(), tree.site.tolist(), strict=True):
            if parent < 0:
                callers.append(())
                continue
            index = tree.function[parent]
            at = self.location(functions[index], places[index], site or functions[index].address)
            callers.append((at, *callers[parent]))
        labels = self._labels(profile, tree)
        node, leaf, costs = self._leaves(profile, tree, places)
        values = matrix(costs, self.columns)
        for at in np.flatnonzero(values.any(axis=1)).tolist():
            sample = self.message.sample.add(
                location_id=(leaf[at], *callers[node[at]]), value=values[at].tolist()
            )
            for key, value in labels[node[at]].items():
                sample.label.add(key=key, str=value)

    def _labels(self, profile: Profile, tree: Nodes) -> list[Mapping[int, int]]:
        region, context_key, task_key = (self.text(key) for key in (_REGION, "context", "task"))
        name = self.text(clean(profile.region))
        contexts = [self.text(context) for context in CONTEXTS]
        tasks = [self.text(clean(task.program)) for task in profile.tasks]
        return [
            {region: name, context_key: contexts[context], task_key: tasks[task]}
            for context, task in zip(tree.context.tolist(), tree.task.tolist(), strict=True)
        ]

    def _leaves(
        self, profile: Profile, tree: Nodes, places: Sequence[tuple[str, int] | None]
    ) -> tuple[list[int], list[int], CostColumns]:
        """Of each sample its node, the location on top of its stack, and what it cost."""
        functions, lines = profile.functions, self.naming.lines
        if not lines:
            leaves = [
                self.location(functions[index], None, functions[index].address)
                for index in tree.function.tolist()
            ]
            return list(range(len(tree))), leaves, tree.costs
        costs = profile.address_costs(by_node=True)
        keys: dict[tuple[int, int, tuple[Frame, ...]], int] = {}
        at: list[int] = []
        nodes, leaves = [], []
        where = tree.of(costs.node, costs.function)
        rows = (where.tolist(), costs.function.tolist(), costs.address.tolist())
        for node, index, address in zip(*rows, strict=True):
            key = (node, index, lines.at(functions[index].origin, address))
            if key not in keys:
                keys[key] = len(keys)
                nodes.append(node)
                leaves.append(self.location(functions[index], places[index], address))
            at.append(keys[key])
        return nodes, leaves, costs.costs.summed(np.array(at, np.int64), len(keys))

    def finished(self) -> Any:
        self.message.string_table.extend(self.texts)
        return self.message


def read_pprof(data: bytes, naming: Naming) -> Sums:
    """The sums of the samples by their label of the region."""
    del naming
    message = PROFILE()
    message.ParseFromString(gzip.decompress(data))
    texts = list(message.string_table)
    names = {title: column for column, title in _TYPES.items()}
    columns = [names.get(texts[one.type], texts[one.type]) for one in message.sample_type]
    sums: Sums = Counter()
    for sample in message.sample:
        (region,) = [texts[one.str] for one in sample.label if texts[one.key] == _REGION]
        for column, value in zip(columns, sample.value, strict=True):
            sums[region, column] += value
    return sums


PPROF = Export(
    name="pprof",
    suffix=".pb.gz",
    summary="for pprof: all columns, region, context and task as tags",
    make=pprof,
    read=read_pprof,
    binary=True,
    one_column=False,
)
