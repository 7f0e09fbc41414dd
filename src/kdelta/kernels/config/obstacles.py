# SPDX-License-Identifier: GPL-2.0-or-later
"""What keeps a Kconfig condition from holding, followed through options that no user is asked for
to those that can be set.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping

import msgspec

from kdelta.kernels.config.kconfig import OFF, PREFIX, in_words, value_of
from kdelta.kernels.config.kconfig_expr import Expr, evaluate, parse_expr
from kdelta.kernels.config.kconfig_files import Kconfig, KconfigEntry

Ask = Callable[[str], str]
"""Returns why the tree's own check of a tool says no to an option of that name, or nothing."""

_CLANG = "it needs clang and lld (write +LLVM=1)"
_GCC = "it needs GCC (leave out LLVM=1)"
_TOOLCHAIN = {
    **dict.fromkeys(
        ("AS_IS_LLVM", "CC_IS_CLANG", "CLANG_VERSION", "LD_IS_LLD", "LLD_VERSION"), (_CLANG, _GCC)
    ),
    **dict.fromkeys(("AS_IS_GNU", "CC_IS_GCC", "GCC_VERSION", "LD_IS_BFD"), (_GCC, _CLANG)),
}
"""Options that say what builds the kernel: what is needed to have them on, and off."""

_MOST_NAMES = 3
_MOST_WAYS = 12
"""Ways that are followed; what a condition has beyond them says nothing more to a reader."""


class _Clause(msgspec.Struct, frozen=True):
    """One thing that has to change, in words. `lacks`: the option that would have to exist."""

    text: str
    lacks: str = ""


_Way = tuple[_Clause, ...]
"""All that has to change at once for a condition to hold."""

_HOLDS: _Way = ()


class Obstacles:
    """Says what conditions lack on one config of one tree."""

    def __init__(self, config: Mapping[str, str], kconfig: Kconfig, ask: Ask) -> None:
        self._config, self._kconfig, self._ask = config, kconfig, ask
        self._blames_tools = False
        self._followed: list[str] = []

    def unmet(self, expr: Expr) -> list[str]:
        """What keeps a condition from being y, each as a clause like "CONFIG_EXPERT is off"; all
        have to change.
        """
        ways = self._ways(expr, wanted=True)
        # What only a tool knows is suspected when nothing else is the reason.
        if _HOLDS in ways and evaluate(expr, self._config) != 2:
            ways = self._with_tools(expr)
        return self._in_words(ways)

    def selecting(self, name: str) -> str:
        """What selects an option now, as a clause; empty if nothing does."""
        selectors = self._active_selectors(name)
        verb = "selects" if len(selectors) == 1 else "select"
        return f"{few(selectors)} {verb} it" if selectors else ""

    def _active_selectors(self, name: str) -> list[str]:
        """The options, with CONFIG_, that select an option now: those that a user can set, where
        they lead to what selects it.
        """
        found: list[str] = []
        self._followed.append(name)
        for entry, condition in self._kconfig.selectors(name):
            is_on = value_of(self._config, PREFIX + entry.name) != OFF
            holds = evaluate(parse_expr(condition or "y"), self._config) != 0
            if is_on and holds and entry.name not in self._followed:
                above = [] if self._is_asked(entry.name) else self._active_selectors(entry.name)
                found += above or [PREFIX + entry.name]
        self._followed.pop()
        return list(dict.fromkeys(found))

    def _with_tools(self, expr: Expr) -> list[_Way]:
        before, self._blames_tools = self._blames_tools, True
        try:
            return self._ways(expr, wanted=True)
        finally:
            self._blames_tools = before

    def _ways(self, expr: Expr, *, wanted: bool) -> list[_Way]:
        """The ways to make a condition hold, or not hold; the empty one if it is so already."""
        value = evaluate(expr, self._config)
        if value == (2 if wanted else 0):
            return [_HOLDS]
        if expr.kind == "not":
            return self._ways(expr.parts[0], wanted=not wanted)
        if expr.kind in ("and", "or"):
            parts = [self._ways(part, wanted=wanted) for part in expr.parts]
            if (expr.kind == "and") == wanted:
                return _all_of(parts)
            return _least(itertools.chain.from_iterable(parts))
        return self._of_leaf(expr, wanted=wanted)

    def _of_leaf(self, expr: Expr, *, wanted: bool) -> list[_Way]:
        if expr.kind == "symbol":
            return self._to_set(expr.text) if wanted else self._to_clear(expr.text)
        if expr.kind == "macro":
            said = f"the compiler or another tool says no to {expr.text}"
            return [(_Clause(said),)] if self._blames_tools else [_HOLDS]
        return [] if expr.kind == "text" else [(self._comparison(expr, wanted=wanted),)]

    def _comparison(self, expr: Expr, *, wanted: bool) -> _Clause:
        for name in expr.symbols():
            if name in _TOOLCHAIN and value_of(self._config, PREFIX + name) in (OFF, "0"):
                return _Clause(_TOOLCHAIN[name][0])
        return _Clause(f"{expr} {'does not hold' if wanted else 'holds'}")

    def _to_set(self, name: str) -> list[_Way]:
        if name in _TOOLCHAIN:
            return [(_Clause(_TOOLCHAIN[name][0]),)]
        if self._is_asked(name):
            return [(self._state(name),)]
        ways = self._followed_to_set(name) if name not in self._followed else []
        return ways or [(_Clause(f"{self._kconfig.arch} does not have {PREFIX}{name}", name),)]

    def _followed_to_set(self, name: str) -> list[_Way]:
        """The ways to have an option on that no user is asked for."""
        self._followed.append(name)
        found: list[_Way] = []
        for entry in self._kconfig.entries.get(name, []):
            ways = self._ways(by_default := _by_default(entry), wanted=True)
            if _HOLDS in ways and (said := self._ask(name)):
                ways = [(_Clause(said),)]
            elif _HOLDS in ways:
                ways = self._with_tools(by_default)
            # Where it should be on by all that is known here, no more than its state is known.
            found += [way or (self._state(name),) for way in ways]
        found += self._by_selectors(name)
        self._followed.pop()
        return _least(found)

    def _by_selectors(self, name: str) -> list[_Way]:
        found: list[_Way] = []
        to_set = []
        for entry, condition in self._kconfig.selectors(name):
            needed = parse_expr(condition or "y")
            if not self._is_asked(entry.name):
                both = Expr("and", "", (Expr("symbol", entry.name), needed))
                found += self._ways(both, wanted=True)
            elif value_of(self._config, PREFIX + entry.name) == "y":
                found += self._ways(needed, wanted=True)
            else:
                to_set.append(PREFIX + entry.name)
        possible = [way for way in found if way and not any(clause.lacks for clause in way)]
        if not to_set:
            return possible
        selecting = f"{self._state(name).text} ({few(to_set, 'or')} would select it)"
        return [*possible, (_Clause(selecting),)]

    def _to_clear(self, name: str) -> list[_Way]:
        if name in _TOOLCHAIN:
            return [(_Clause(_TOOLCHAIN[name][1]),)]
        if selecting := self.selecting(name):
            return [(_Clause(f"{self._state(name).text} ({selecting})"),)]
        if self._is_asked(name):
            return [(self._state(name),)]
        ways: list[_Way] = []
        if name not in self._followed:
            self._followed.append(name)
            entries = self._kconfig.entries.get(name, [])
            ways = _all_of([self._ways(_by_default(entry), wanted=False) for entry in entries])
            self._followed.pop()
        ways = [way for way in ways if way]
        return ways or [(_Clause(f"{self._kconfig.arch} always has {PREFIX}{name}", name),)]

    def _is_asked(self, name: str) -> bool:
        return any(entry.prompt is not None for entry in self._kconfig.entries.get(name, []))

    def _state(self, name: str) -> _Clause:
        return _Clause(f"{PREFIX}{name} is {in_words(value_of(self._config, PREFIX + name))}")

    def _in_words(self, ways: list[_Way]) -> list[str]:
        possible = [way for way in ways if not any(clause.lacks for clause in way)]
        if not possible:
            # Of what cannot be changed, one way says as much as all.
            lacking = (clause.text for way in ways[:1] for clause in way if clause.lacks)
            if len(ways) > 1 and all(way[0].text.startswith(self._absent) for way in ways):
                names = [PREFIX + way[0].lacks for way in ways]
                return [f"{self._absent}any of {few(names)}"]
            return list(dict.fromkeys(lacking))
        common = [clause for clause in possible[0] if all(clause in way for way in possible)]
        texts = [clause.text for clause in common]
        if len(possible) == 1:
            return texts
        others = [
            " and ".join(clause.text for clause in way if clause not in common) for way in possible
        ]
        more = len(others) - _MOST_NAMES
        shown = others[:_MOST_NAMES] + ([f"{more} more"] if more > 0 else [])
        return [*texts, f"one of these has to change: {'; '.join(shown)}"]

    @property
    def _absent(self) -> str:
        return f"{self._kconfig.arch} does not have "


def few(names: list[str], joint: str = "and") -> str:
    """The first of these names, and how many more there are."""
    names = list(dict.fromkeys(names))
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[:_MOST_NAMES])} {joint} {len(names) - _MOST_NAMES} more"
    return f" {joint} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _by_default(entry: KconfigEntry) -> Expr:
    """What must hold for an option to be on where no user is asked and nothing selects it."""
    defaults = tuple(
        Expr("and", "", (parse_expr(one.value), parse_expr(one.condition or "y")))
        for one in entry.defaults
    )
    on_its_own = Expr("or", "", defaults) if defaults else Expr("text", OFF)
    return Expr("and", "", (entry.depends(), on_its_own))


def _all_of(parts: Iterable[list[_Way]]) -> list[_Way]:
    """The ways to have all of these at once."""
    ways: list[_Way] = [_HOLDS]
    for part in parts:
        ways = _least(tuple(dict.fromkeys((*way, *more))) for way in ways for more in part)
    return ways


def _least(ways: Iterable[_Way]) -> list[_Way]:
    """Those that do not change more than another one does, the shortest first."""
    kept: list[_Way] = []
    for way in sorted(ways, key=len):
        if len(kept) < _MOST_WAYS and not any(set(one) <= set(way) for one in kept):
            kept.append(way)
    return kept
