# SPDX-License-Identifier: GPL-2.0-or-later
"""Conditions in Kconfig files: read and evaluated on a config."""

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec

from kdelta.kernels.config.kconfig import PREFIX, is_number, option_number, value_of

Tri = Literal[0, 1, 2]
"""n, m, y, as kconfig calculates with them: and is the least, or the greatest, not is 2 minus."""

_TRI: dict[str, Tri] = {"n": 0, "m": 1, "y": 2}
_INVERSE: tuple[Tri, Tri, Tri] = (2, 1, 0)
_TOKEN = re.compile(
    r"""\s*(
        \$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)   # a macro: what a tool answers
      | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*'
      | && | \|\| | <= | >= | != | [=!<>()]
      | [\w.$/+-]+
    )""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    ">": lambda order: order > 0,
    "<=": lambda order: order <= 0,
    ">=": lambda order: order >= 0,
}


class Expr(msgspec.Struct, frozen=True):
    """One node: `kind` is "symbol", "text" (a constant), "macro", "not", "and", "or" or a
    comparison's sign. `text` is a leaf's.
    """

    kind: str
    text: str = ""
    parts: tuple["Expr", ...] = ()

    def symbols(self) -> Iterator[str]:
        """The options it mentions, without CONFIG_."""
        if self.kind == "symbol":
            yield self.text
        for part in self.parts:
            yield from part.symbols()

    def __str__(self) -> str:
        if self.kind in ("symbol", "text", "macro"):
            return self.text
        if self.kind == "not":
            return f"!{self.parts[0]}"
        sign = {"and": "&&", "or": "||"}.get(self.kind, self.kind)
        return f"({f' {sign} '.join(map(str, self.parts))})"


TRUE = Expr("text", "y")


@functools.cache
def parse_expr(text: str) -> Expr:
    """Reads a condition; what cannot be read becomes a macro, whose value is unknown."""
    with contextlib.suppress(IndexError):
        expr, rest = _or(_TOKEN.findall(text))
        if not rest:
            return expr
    return Expr("macro", text)


def _or(tokens: list[str]) -> tuple[Expr, list[str]]:
    return _chain(tokens, "||", "or", lambda rest: _chain(rest, "&&", "and", _not))


def _chain(
    tokens: list[str],
    sign: str,
    kind: str,
    operand: Callable[[list[str]], tuple[Expr, list[str]]],
) -> tuple[Expr, list[str]]:
    part, tokens = operand(tokens)
    parts = [part]
    while tokens and tokens[0] == sign:
        part, tokens = operand(tokens[1:])
        parts.append(part)
    return (parts[0] if len(parts) == 1 else Expr(kind, "", tuple(parts))), tokens


def _not(tokens: list[str]) -> tuple[Expr, list[str]]:
    if tokens[0] == "!":
        part, rest = _not(tokens[1:])
        return Expr("not", "", (part,)), rest
    if tokens[0] == "(":
        part, rest = _or(tokens[1:])
        if rest[0] != ")":
            raise IndexError
        return part, rest[1:]
    left, rest = _leaf(tokens[0]), tokens[1:]
    if rest and rest[0] in _COMPARISONS:
        return Expr(rest[0], "", (left, _leaf(rest[1]))), rest[2:]
    return left, rest


def _leaf(token: str) -> Expr:
    if "$(" in token:
        return Expr("macro", token)
    if token[0] in "\"'":
        return Expr("text", token[1:-1])
    if token in _TRI or is_number(token):  # 64BIT is an option
        return Expr("text", token)
    if not re.fullmatch(r"\w+", token):
        raise IndexError
    return Expr("symbol", token)


def evaluate(expr: Expr, config: Mapping[str, str]) -> Tri | None:
    """The condition's value on a config; None where it depends on what only a tool knows."""
    if expr.kind == "macro":
        return None
    if expr.kind in ("symbol", "text"):
        return _TRI.get(value_text(expr, config), 0)
    if expr.kind in _COMPARISONS:
        return _compare(expr, config)
    values = [evaluate(part, config) for part in expr.parts]
    if expr.kind == "not":
        return _invert(values[0])
    return _least(values) if expr.kind == "and" else _invert(_least(list(map(_invert, values))))


def _least(values: list[Tri | None]) -> Tri | None:
    known = [value for value in values if value is not None]
    return 0 if 0 in known else None if len(known) < len(values) else min(known)


def _invert(value: Tri | None) -> Tri | None:
    return None if value is None else _INVERSE[value]


def value_text(expr: Expr, config: Mapping[str, str]) -> str:
    """A leaf's value as text, without quotes."""
    value = value_of(config, PREFIX + expr.text) if expr.kind == "symbol" else expr.text
    return value[1:-1] if value.startswith('"') else value


def _compare(expr: Expr, config: Mapping[str, str]) -> Tri | None:
    if any(part.kind == "macro" for part in expr.parts):
        return None
    left, right = (value_text(part, config) for part in expr.parts)
    if left in _TRI and right in _TRI:
        order = _TRI[left] - _TRI[right]
    else:
        try:
            order = option_number(left) - option_number(right)
        except ValueError:
            order = (left > right) - (left < right)
    return 2 if _COMPARISONS[expr.kind](order) else 0
