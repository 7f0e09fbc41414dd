# SPDX-License-Identifier: GPL-2.0-or-later
"""What the lines of sources cost, in one run or in two whose sources differ."""

import difflib
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec
import numpy as np

from kdelta.counts.by_key import by_key
from kdelta.counts.profile import Profile, ProfiledFunction
from kdelta.counts.source_lines import Frame, SourceLines
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.profiles.annotate import chosen_rows
from kdelta.infer.profiles.matching import Inlined, Key
from kdelta.infer.profiles.profile import Selection, Sort
from kdelta.spec.errors import LabError


class SourceLine(msgspec.Struct, frozen=True, order=True):
    """A line of a source, and the function in it, by its name in the source. What is not known has
    no file, line 0, and the function's symbol.
    """

    origin: str
    file: str
    line: int
    function: str

    @property
    def is_known(self) -> bool:
        """Whether debug info has it."""
        return bool(self.file)


def executed_addresses(
    profiles: Iterable[Profile], selection: Selection, keys: frozenset[Key] | None = None
) -> dict[str, set[int]]:
    """The addresses of all instructions that were executed, by origin."""
    found = by_key(
        (profile.functions[function].origin, address)
        for profile in profiles
        for costs in [chosen_rows(profile, selection, keys).address_costs()]
        for function, address in zip(costs.function.tolist(), costs.address.tolist(), strict=True)
    )
    return {origin: set(addresses) for origin, addresses in found.items()}


def by_line(
    profiles: Iterable[Profile], selection: Selection, lines: SourceLines
) -> dict[SourceLine, int]:
    """What each line cost in these regions. LabError unless that adds up to the regions."""
    found: dict[SourceLine, int] = {}
    whole = 0
    for profile in profiles:
        chosen = chosen_rows(profile, selection)
        whole += int(chosen.row_costs().insns.sum())
        for function, frames, figure in _addresses(chosen, lines, Sort.INSNS):
            line = (
                SourceLine(function.origin, frames[0].file, frames[0].line, frames[0].function)
                if frames
                else SourceLine(function.origin, "", 0, function.name)
            )
            found[line] = found.get(line, 0) + figure
    if sum(found.values()) != whole:
        raise LabError(
            f"the lines add up to {sum(found.values())}, and the regions to {whole}",
            "this is an error of kdelta; please report it",
        )
    return found


def _addresses(
    chosen: Profile, lines: SourceLines, by: Sort
) -> Iterator[tuple[ProfiledFunction, Sequence[Frame], int]]:
    """Of each executed address its function, its frames and what functions are ranked by."""
    costs = chosen.address_costs()
    figures = (
        sum(costs.costs.specials.values(), np.zeros(len(costs.costs), np.int64))
        if by is Sort.SPECIAL
        else getattr(costs.costs, _COLUMNS[by])
    )
    columns = (costs.function.tolist(), costs.address.tolist(), figures.tolist())
    for index, address, figure in zip(*columns, strict=True):
        function = chosen.functions[index]
        yield function, lines.at(function.origin, address), figure


_COLUMNS = {
    Sort.INSNS: "insns",
    Sort.LOADS: "loads",
    Sort.STORES: "stores",
    Sort.STRING: "string_bytes",
}


def inlined_in(
    profiles: Iterable[Profile],
    selection: Selection,
    lines: SourceLines,
    *,
    by: Sort = Sort.INSNS,
    each: bool = False,
) -> Inlined:
    """What debug info says of inlined functions in what was executed; each: in one pass of each
    region.
    """
    found: dict[Key, dict[tuple[str, ...], Fraction]] = {}
    for profile in profiles:
        passes = max(1, profile.iterations) if each else 1
        for function, frames, figure in _addresses(chosen_rows(profile, selection), lines, by):
            if len(frames) > 1 and figure:
                chain = tuple(frame.function for frame in reversed(frames[:-1]))
                row = found.setdefault((function.origin, function.name), {})
                row[chain] = row.get(chain, Fraction(0)) + Fraction(figure, passes)
    return found


class LineChange(msgspec.Struct, frozen=True):
    """A line on both sides; None on the side whose source has it not. `text` is the line itself, if
    the source is at hand.
    """

    a_line: SourceLine | None
    b_line: SourceLine | None
    a: int
    b: int
    text: str = ""

    @property
    def added(self) -> int:
        """B's less A's."""
        return self.b - self.a


Text = Callable[[str, str], Sequence[str] | None]
"""Of an origin and a file its lines; None where they are not at hand."""


def no_text(_origin: str, _file: str) -> None:
    """No source is at hand."""


def line_changes(
    a: Mapping[SourceLine, int],
    b: Mapping[SourceLine, int],
    a_text: Text = no_text,
    b_text: Text = no_text,
) -> tuple[LineChange, ...]:
    """All lines of both sides, most added first. A line of one file is the other's line of the same
    text, as a diff of both files has it; where they are not at hand, that of the same number.
    """
    numbers: dict[tuple[str, str], Mapping[int, int] | None] = {}
    found: dict[object, LineChange] = {}
    for line, figure in a.items():
        before = found.get(_name(line))
        whole = figure + (before.a if before else 0)
        found[_name(line)] = LineChange(line, None, whole, 0, line_text(line, a_text))
    for line, figure in b.items():
        file = (line.origin, line.file)
        if line.is_known and file not in numbers:
            numbers[file] = _same_lines(a_text(*file), b_text(*file))
        same = numbers.get(file)
        at = line.line if same is None else same.get(line.line)
        of_a = None if at is None else _name(msgspec.structs.replace(line, line=at))
        name: object = of_a or ("new", line)
        text = line_text(line, b_text)
        other = found.get(name) or LineChange(None, line, 0, 0)
        found[name] = LineChange(other.a_line, line, other.a, other.b + figure, text or other.text)
    return tuple(sorted(found.values(), key=lambda one: (-one.added, one.b_line or one.a_line)))


def _name(line: SourceLine) -> tuple[str, str, int, str]:
    return line.origin, line.file, line.line, strip_suffixes(line.function)


def line_text(line: SourceLine, text: Text) -> str:
    """A line as its source has it; nothing where that is not at hand."""
    lines = text(line.origin, line.file) if line.is_known else None
    return lines[line.line - 1].strip() if lines and line.line <= len(lines) else ""


def _same_lines(a: Sequence[str] | None, b: Sequence[str] | None) -> Mapping[int, int] | None:
    """Of B's line numbers those of A's that are the same lines; None if unknown."""
    if a is None or b is None:
        return None
    first = _alike(a, b)
    last = _alike(a[first:][::-1], b[first:][::-1])
    found = {number + 1: number + 1 for number in range(first)}
    found |= {len(b) - index: len(a) - index for index in range(last)}
    matcher = difflib.SequenceMatcher(
        None, a[first : len(a) - last], b[first : len(b) - last], autojunk=False
    )
    for at, to, size in matcher.get_matching_blocks():
        found |= {first + to + i + 1: first + at + i + 1 for i in range(size)}
    return found


def _alike(a: Sequence[str], b: Sequence[str]) -> int:
    """With how many lines both begin."""
    return sum(1 for _ in itertools.takewhile(bool, map(operator.eq, a, b)))
