# SPDX-License-Identifier: GPL-2.0-or-later
"""What is chosen and opened of a list of functions. It follows from the keys alone."""

from collections.abc import Callable, Sequence

import msgspec

from kdelta.studies.profile.top import ORDERS, Functions, Order, Path, TopLine, Way, listed
from kdelta.studies.profile.views_text import node_name


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
            self._move(self.cursor + _STEPS[key] * (page if key in _PAGES else 1))
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


_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -1, "pagedown": 1, " ": 1}
_PAGES = {"pageup", "pagedown", " "}
