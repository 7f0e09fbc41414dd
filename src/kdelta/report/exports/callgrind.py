# SPDX-License-Identifier: GPL-2.0-or-later
"""callgrind.out, format version 1, for KCachegrind and callgrind_annotate.

The format knows functions and who called whom, but no paths. Above the functions that nothing
called stand three of [kdelta]: the region, its contexts, and the program. What a call cost with
all below it leaves out what is below the caller again, so that a function's own cost with its
calls is its inclusive cost, also when it is entered from itself.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from kdelta.counts.arrays import I32, I64
from kdelta.counts.model import CONTEXTS
from kdelta.counts.profile import Profile
from kdelta.report.exports.model import (
    Export,
    Naming,
    Sums,
    clean,
    column_of,
    column_title,
    columns_of,
    function_name,
    matrix,
)
from kdelta.report.exports.nodes import Nodes, function_places, nodes_of

_EVENTS = {
    "insns": "Ir",
    "loads": "Dr",
    "stores": "Dw",
    "string-bytes": "StrBytes",
    "string-iterations": "StrAgain",
}
_OURS = "[kdelta]"
_UNKNOWN = "???"
_REGION = "region "


class _Name(msgspec.Struct, frozen=True, order=True):
    """What distinguishes functions in the format."""

    origin: str
    file: str
    name: str


class _Position(msgspec.Struct, frozen=True, order=True):
    """Where in a function: its file where that is known, the address and the line, or 0."""

    file: str
    address: int
    line: int


class _Call(msgspec.Struct, frozen=True, order=True):
    """Calls of the same function from the same place."""

    at: _Position
    callee: _Name
    callee_at: _Position


def event_name(column: str) -> str:
    """A column as an event: letters and digits only."""
    words = re.split(r"[^A-Za-z0-9]+", column)
    return _EVENTS.get(column, "Sp" + "".join(word.capitalize() for word in words))


class _CallgrindSums:
    """Sums over regions by function and position."""

    def __init__(self, naming: Naming, columns: Sequence[str]) -> None:
        self.naming, self.columns = naming, columns
        self.own: dict[_Name, dict[_Position, I64]] = {}
        self.calls: dict[_Name, dict[_Call, tuple[int, I64]]] = {}
        self.starts: dict[_Name, _Position] = {}

    def add(self, profile: Profile) -> None:
        names = self._names(profile)
        spent = profile.address_costs()
        rows = (spent.function.tolist(), spent.address.tolist(), matrix(spent.costs, self.columns))
        for function, address, values in zip(*rows, strict=True):
            at = self._position(profile.functions[function].origin, address)
            own = self.own.setdefault(names[function], {})
            own[at] = own[at] + values if at in own else values
        self._add_calls(profile, nodes_of(profile), names)

    def _names(self, profile: Profile) -> list[_Name]:
        found = []
        places = function_places(profile, self.naming.lines)
        for function, place in zip(profile.functions, places, strict=True):
            file, line = (clean(place[0]), place[1]) if place else (_UNKNOWN, 0)
            name = _Name(clean(function.origin), file, function_name(function))
            self.starts.setdefault(name, _Position(file, function.address, line))
            self.own.setdefault(name, {})
            found.append(name)
        return found

    def _add_calls(self, profile: Profile, tree: Nodes, names: list[_Name]) -> None:
        identity = {name: index for index, name in enumerate(dict.fromkeys(names))}
        same = np.array([identity[name] for name in names], np.int64)[tree.function]
        inclusive = matrix(tree.costs, self.columns)
        for node in range(len(tree) - 1, -1, -1):
            if tree.parent[node] >= 0:
                inclusive[tree.parent[node]] += inclusive[node]
        cost = call_costs(tree.parent, same, inclusive)
        rows = (tree.parent, tree.function, tree.context, tree.task, tree.site, tree.entered)
        lists = zip(*(row.tolist() for row in rows), strict=True)
        for node, (parent, function, context, task, site, entered) in enumerate(lists):
            if parent >= 0:
                caller = tree.function[parent]
                at = self._position(profile.functions[caller].origin, site)
                self._add_call(names[caller], at, names[function], entered, cost[node])
                continue
            region = f"{_REGION}{clean(profile.region)}"
            of_context = f"{CONTEXTS[context]} of {region}"
            program = f"program {clean(profile.tasks[task].program)}, {of_context}"
            chain = [self._ours(name) for name in (region, of_context, program)]
            for caller, callee in pairwise([*chain, names[function]]):
                times = entered if callee is names[function] else 0
                self._add_call(caller, self.starts[caller], callee, times, inclusive[node])

    def _ours(self, name: str) -> _Name:
        found = _Name(_OURS, _UNKNOWN, name)
        self.starts[found] = _Position(_UNKNOWN, 0, 0)
        self.own.setdefault(found, {})
        return found

    def _add_call(self, caller: _Name, at: _Position, callee: _Name, times: int, cost: I64) -> None:
        key = _Call(at, callee, self.starts[callee])
        calls = self.calls.setdefault(caller, {})
        before, spent = calls.get(key, (0, np.zeros(len(cost), np.int64)))
        calls[key] = (before + times, spent + cost)

    def _position(self, origin: str, address: int) -> _Position:
        file, line = self.naming.lines.line(origin, address) or (_UNKNOWN, 0)
        return _Position(clean(file), address, line)


def call_costs(parent: I32, same: I64, inclusive: I64) -> I64:
    """Of each node what its call cost, but for what is below its caller again: (n, columns).

    `same` numbers the functions, (n,). For a node called by one of function f it is what is
    inclusive there without the nodes of f below: these are in calls that are nearer to them.
    """
    cost = inclusive.copy()
    nodes = np.arange(len(parent))
    # Up from each node at once: `child` is the node on its path right below `above`.
    child, above = nodes, parent.astype(np.int64)
    while len(nodes):
        going = above >= 0
        nodes, child, above = nodes[going], child[going], above[going]
        met = same[above] == same[nodes]
        np.subtract.at(cost, child[met], inclusive[nodes[met]])
        nodes, child, above = nodes[~met], above[~met], parent[above[~met]].astype(np.int64)
    return cost


def callgrind(profiles: Sequence[Profile], naming: Naming) -> bytes:
    """The file's text."""
    columns = columns_of(profiles)
    maker = _CallgrindSums(naming, columns)
    for profile in profiles:
        maker.add(profile)
    spent = [values for own in maker.own.values() for values in own.values()]
    whole = _figures(sum(spent, np.zeros(len(columns), np.int64)))
    short = _Short()
    functions = (line for name in sorted(maker.own) for line in _function(name, maker, short))
    lines = [*_head(naming, columns), f"summary: {whole}", "", *functions, f"totals: {whole}", ""]
    return "\n".join(lines).encode()


class _Short:
    """Names by number: a name is written once, with its number."""

    def __init__(self) -> None:
        self.numbers: dict[str, dict[_Name | str, int]] = {"ob": {}, "fl": {}, "fn": {}}

    def name(self, kind: str, name: _Name | str) -> str:
        """The name of an object, a file or a function, which is written out only the first time."""
        known = self.numbers[kind]
        if name in known:
            return f"({known[name]})"
        known[name] = len(known) + 1
        return f"({known[name]}) {name.name if isinstance(name, _Name) else name}"


def _head(naming: Naming, columns: Sequence[str]) -> Iterator[str]:
    yield "# callgrind format"
    yield "version: 1"
    yield f"creator: {naming.creator}"
    yield "pid: 1"
    yield f"cmd: {clean(naming.command) or naming.title}"
    yield "part: 1"
    for label, fact in naming.facts().items():
        yield f"desc: {label}: {fact}"
    yield "positions: instr line"
    for column in columns:
        yield f"event: {event_name(column)} : {column_title(column)}"
    yield f"events: {' '.join(event_name(column) for column in columns)}"


def _function(name: _Name, maker: _CallgrindSums, short: _Short) -> Iterator[str]:
    own, calls = maker.own[name], maker.calls.get(name, {})
    if not own and not calls:
        return
    yield f"ob={short.name('ob', name.origin)}"
    yield f"fl={short.name('fl', name.file)}"
    yield f"fn={short.name('fn', name)}"
    file = name.file
    spent: list[tuple[_Position, _Call | None, int, I64]] = [
        (at, None, 0, own[at]) for at in sorted(own)
    ]
    spent += [(call.at, call, *calls[call]) for call in sorted(calls)]
    for at, call, times, values in spent:
        if at.file != file:
            file = at.file
            yield f"{'fe' if file == name.file else 'fi'}={short.name('fl', file)}"
        if call:
            yield f"cob={short.name('ob', call.callee.origin)}"
            yield f"cfi={short.name('fl', call.callee.file)}"
            yield f"cfn={short.name('fn', call.callee)}"
            # Readers take the costs of no call at all for the caller's own. It is none where the
            # callee was under way when the region began, and above the functions without a caller.
            yield f"calls={max(1, times)} {_at(call.callee_at)}"
        yield f"{_at(at)} {_figures(values)}"
    yield ""


def _at(position: _Position) -> str:
    return f"{position.address:#x} {position.line}"


def _figures(values: I64) -> str:
    # Zeros at the end may be left out, but not all of them.
    return " ".join(map(str, np.trim_zeros(values, "b").tolist())) or "0"


def read_callgrind(data: bytes, naming: Naming) -> Sums:
    """The sums of all own costs, and of each region what its calls cost with all below."""
    del naming
    names: dict[str, str] = {}
    objects: dict[str, str] = {}
    columns: list[str] = []
    titles: dict[str, str] = {}
    sums: Sums = Counter()
    is_ours, function, is_call = False, "", False
    for line in data.decode().splitlines():
        key, _, rest = line.partition("=")
        if line.startswith("0x"):
            is_region = is_ours and function.startswith(_REGION)
            if is_region or not is_call:
                region = function.removeprefix(_REGION) if is_region else ""
                for column, value in zip(columns, line.split(" ")[2:], strict=False):
                    sums[region, column] += int(value)
            is_call = False
        elif key == "calls":
            is_call = True
        elif key in {"ob", "cob"}:
            name = _name(objects, rest)
            is_ours = name == _OURS if key == "ob" else is_ours
        elif key in {"fn", "cfn"}:
            name = _name(names, rest)
            function = name if key == "fn" else function
        elif line.startswith("event: "):
            event, _, title = line.removeprefix("event: ").partition(" : ")
            titles[event] = column_of(title)
        elif line.startswith("events: "):
            columns = [titles[event] for event in line.removeprefix("events: ").split()]
    return sums


def _name(known: dict[str, str], text: str) -> str:
    """A name by its number, which stands before it where it is written for the first time."""
    number, _, name = text.partition(" ")
    return known.setdefault(number, name)


CALLGRIND = Export(
    name="callgrind",
    suffix=".callgrind.out",
    summary="for KCachegrind and callgrind_annotate: all columns, by address and line",
    make=callgrind,
    read=read_callgrind,
    one_column=False,
)
