# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions as one looks through them: ranked, filtered, opened down to what they called or up to
who called them.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Literal

import msgspec
import numpy as np

from kdelta.counts.arrays import I64
from kdelta.infer.profiles.calls import Calls
from kdelta.infer.profiles.matching import Key
from kdelta.studies.profile.views_text import node_name

Path = tuple[Key, ...]
"""A line by the functions that were opened above it, and its own."""

Order = Literal["inclusive", "own", "calls", "name"]
ORDERS: tuple[Order, ...] = ("inclusive", "own", "calls", "name")


class Way(Enum):
    """Where opening a function leads."""

    CALLEES = "callees"
    CALLERS = "callers"


class TopLine(msgspec.Struct, frozen=True):
    """A function in the list, or one below an opened one. own: None where it has no meaning, as of
    a caller. openable: whether there is anything below it.
    """

    path: Path
    inclusive: int
    own: int | None
    calls: int
    openable: bool
    is_open: bool = False

    @property
    def name(self) -> str:
        return node_name(self.path[-1])


class _NodeGroup(msgspec.Struct, frozen=True):
    """Nodes behind a line: those that it is (`at`), and those whose cost it shows (`of`)."""

    at: tuple[int, ...]
    of: tuple[int, ...]


class Functions:
    """A tree of calls by function. `total` is the sum of all that was executed."""

    def __init__(self, calls: Calls) -> None:
        self.calls, self.total = calls, calls.total
        self._children = calls.children()
        self._own: dict[Key, int] = {}
        self._times: dict[Key, int] = {}
        outer: dict[Key, list[int]] = {}
        outermost = _outermost(calls)
        for node, key in enumerate(calls.key):
            self._own[key] = self._own.get(key, 0) + calls.own[node]
            self._times[key] = self._times.get(key, 0) + calls.calls[node]
            if outermost[node]:
                outer.setdefault(key, []).append(node)
        self._outer = {key: _NodeGroup(tuple(nodes), tuple(nodes)) for key, nodes in outer.items()}
        self._groups: dict[tuple[Way, Path], dict[Key, _NodeGroup]] = {}

    def all(self, way: Way, opened: frozenset[Path]) -> list[TopLine]:
        """Each function once."""
        return [
            self._line(way, (key,), group, opened, (self._own[key], self._times[key]))
            for key, group in self._outer.items()
        ]

    def below(self, way: Way, path: Path, opened: frozenset[Path]) -> list[TopLine]:
        """What is below a line."""
        lines = []
        for key, group in self._below(way, path).items():
            own = sum(self.calls.own[node] for node in group.at) if way is Way.CALLEES else None
            times = sum(self.calls.calls[node] for node in group.of)
            lines.append(self._line(way, (*path, key), group, opened, (own, times)))
        return lines

    def _line(
        self,
        way: Way,
        path: Path,
        group: _NodeGroup,
        opened: frozenset[Path],
        own_and_times: tuple[int | None, int],
    ) -> TopLine:
        further = any(
            self._children[node] if way is Way.CALLEES else self.calls.parent[node] >= 0
            for node in group.at
        )
        inclusive = sum(self.calls.inclusive[node] for node in group.of)
        return TopLine(path, inclusive, *own_and_times, further, further and path in opened)

    def _below(self, way: Way, path: Path) -> dict[Key, _NodeGroup]:
        if (way, path) not in self._groups:
            group = (
                self._outer[path[0]] if len(path) == 1 else self._below(way, path[:-1])[path[-1]]
            )
            self._groups[way, path] = self._split(way, group)
        return self._groups[way, path]

    def _split(self, way: Way, group: _NodeGroup) -> dict[Key, _NodeGroup]:
        if way is Way.CALLEES:
            pairs = [(child, child) for node in group.at for child in self._children[node]]
        else:
            rows = zip(group.at, group.of, strict=True)
            pairs = [(self.calls.parent[at], of) for at, of in rows if self.calls.parent[at] >= 0]
        found: dict[Key, list[tuple[int, int]]] = {}
        for at, of in pairs:
            found.setdefault(self.calls.key[at], []).append((at, of))
        return {
            key: _NodeGroup(tuple(at for at, _ in rows), tuple(of for _, of in rows))
            for key, rows in found.items()
        }


_KEYS: dict[Order, Callable[[TopLine], tuple[int, str]]] = {
    "inclusive": lambda line: (-line.inclusive, line.name),
    "own": lambda line: (-(line.own or 0), line.name),
    "calls": lambda line: (-line.calls, line.name),
    "name": lambda line: (0, line.name),
}

_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -1, "pagedown": 1, " ": 1}


def _outermost(calls: Calls) -> list[bool]:
    """Of each node whether none above it is of its function."""
    index = {key: number for number, key in enumerate(dict.fromkeys(calls.key))}
    label: I64 = np.array([index[key] for key in calls.key], np.int64)
    parent: I64 = np.array(calls.parent, np.int64)
    found = np.ones(len(calls), bool)
    nodes, above = np.arange(len(calls)), parent
    while len(nodes):
        going = above >= 0
        nodes, above = nodes[going], above[going]
        met = label[above] == label[nodes]
        found[nodes[met]] = False
        nodes, above = nodes[~met], parent[above[~met]]
    return [bool(one) for one in found]


def ranked(lines: Iterable[TopLine], order: Order) -> list[TopLine]:
    """The lines, the most first; of the same figure, by name."""
    return sorted(lines, key=_KEYS[order])


def listed(
    functions: Functions, way: Way, order: Order, opened: frozenset[Path], words: str = ""
) -> list[TopLine]:
    """All lines: the functions whose name has these words, with what is below those opened."""
    found: list[TopLine] = []
    tops = [line for line in functions.all(way, opened) if words.lower() in line.name.lower()]
    left = ranked(tops, order)[::-1]
    while left:
        line = left.pop()
        found.append(line)
        if line.is_open:
            left += ranked(functions.below(way, line.path, opened), order)[::-1]
    return found


class Choice(msgspec.Struct, frozen=True):
    """What is looked at: names of a region, of whose work, and of a column."""

    region: str
    whose: str
    column: str


class Choices(msgspec.Struct, frozen=True):
    """What there is to be looked at; the first ones are what one sees at first."""

    regions: tuple[str, ...]
    whose: tuple[str, ...]
    columns: tuple[str, ...]


class TopState(msgspec.Struct, frozen=True):
    """What was chosen and where the cursor is. typing: the words are being typed."""

    choice: Choice
    way: Way = Way.CALLEES
    order: Order = "inclusive"
    opened: frozenset[Path] = frozenset()
    words: str = ""
    typing: bool = False
    helping: bool = False
    at: Path = ()
    done: bool = False


class Top:
    """The list and the keys. `functions_of` gives the functions of a choice."""

    def __init__(self, choices: Choices, functions_of: Callable[[Choice], Functions]) -> None:
        self.choices = choices
        self.state = TopState(Choice(choices.regions[0], choices.whose[0], choices.columns[0]))
        self._functions_of = functions_of
        self._known: dict[Choice, Functions] = {}
        self.lines: list[TopLine] = []
        self._list()

    @property
    def functions(self) -> Functions:
        """What is looked at."""
        choice = self.state.choice
        if choice not in self._known:
            self._known[choice] = self._functions_of(choice)
        return self._known[choice]

    @property
    def cursor(self) -> int:
        """The index of the line that the cursor is on."""
        paths = [line.path for line in self.lines]
        return paths.index(self.state.at) if self.state.at in paths else 0

    def press(self, key: str, page: int = 10) -> None:
        """Does what a key asks for: a character, or the name of a key. `page` is how many lines are
        seen at once. Other keys do nothing.
        """
        if self.state.helping:
            self._set(helping=False)
        elif self.state.typing:
            self._type(key)
        elif key in _STEPS:
            self._move(
                self.cursor + _STEPS[key] * (page if key in {"pageup", "pagedown", " "} else 1)
            )
        else:
            self._act(key)
        self._list()

    def _act(self, key: str) -> None:
        state, choices = self.state, self.choices
        actions: dict[str, Callable[[], None]] = {
            "q": lambda: self._set(done=True),
            "?": lambda: self._set(helping=True),
            "/": lambda: self._set(typing=True),
            "escape": lambda: self._set(words=""),
            "home": lambda: self._move(0),
            "end": lambda: self._move(len(self.lines)),
            "enter": self._open,
            "right": lambda: None if state.at in state.opened else self._open(),
            "left": self._close,
            "u": self._turn,
            "<": lambda: self._reorder(-1),
            ">": lambda: self._reorder(1),
            "m": lambda: self._choose("column", choices.columns, 1),
            "M": lambda: self._choose("column", choices.columns, -1),
            "r": lambda: self._choose("region", choices.regions, 1),
            "R": lambda: self._choose("region", choices.regions, -1),
            "w": lambda: self._choose("whose", choices.whose, 1),
        }
        orders = {order[0]: order for order in ORDERS}
        same = {"h": "?", "g": "home", "G": "end", "backspace": "left", "+": "right", "-": "left"}
        key = same.get(key, key)
        if key in orders:
            self._set(order=orders[key])
        elif key in actions:
            actions[key]()

    def _set(self, **changes: object) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)

    def _list(self) -> None:
        state = self.state
        self.lines = listed(self.functions, state.way, state.order, state.opened, state.words)
        if self.lines and state.at not in {line.path for line in self.lines}:
            self._set(at=self.lines[0].path)

    def _move(self, index: int) -> None:
        if self.lines:
            self._set(at=self.lines[max(0, min(index, len(self.lines) - 1))].path)

    def _type(self, key: str) -> None:
        words = self.state.words
        if key == "enter":
            self._set(typing=False)
        elif key == "escape":
            self._set(typing=False, words="")
        elif key == "backspace":
            self._set(words=words[:-1], typing=bool(words))
        elif len(key) == 1 and key.isprintable():
            self._set(words=words + key)

    def _open(self) -> None:
        if self.lines and self.lines[self.cursor].openable:
            self._set(opened=self.state.opened ^ {self.state.at})

    def _close(self) -> None:
        at = self.state.at
        if at in self.state.opened:
            self._set(opened=self.state.opened - {at})
        elif len(at) > 1:
            self._set(at=at[:-1])

    def _turn(self) -> None:
        # Of what is opened nothing stands for the other way.
        other = Way.CALLERS if self.state.way is Way.CALLEES else Way.CALLEES
        self._set(way=other, opened=frozenset(), at=self.state.at[-1:])
        if self.state.at and self.state.words.lower() not in node_name(self.state.at[0]).lower():
            self._set(words="")

    def _reorder(self, step: int) -> None:
        self._set(order=ORDERS[(ORDERS.index(self.state.order) + step) % len(ORDERS)])

    def _choose(self, which: str, names: Sequence[str], step: int) -> None:
        now = names.index(getattr(self.state.choice, which))
        name = names[(now + step) % len(names)]
        self._set(choice=msgspec.structs.replace(self.state.choice, **{which: name}))
