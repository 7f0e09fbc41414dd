# SPDX-License-Identifier: GPL-2.0-or-later
"""What is shown of recorded runs besides their functions: calls, source lines, instructions."""

import contextlib
from collections.abc import Iterable, Sequence

import msgspec

from kdelta.counts.disassembly import Block, disassembled
from kdelta.counts.model import is_kernel
from kdelta.counts.profile import Profile
from kdelta.counts.source_lines import SourceLines
from kdelta.counts.symbols import code_table
from kdelta.host.interrupt import in_thread
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.profiles.annotate import AnnotatedFunction, Disassemble, annotated
from kdelta.infer.profiles.calls import callers, merged_calls
from kdelta.infer.profiles.matching import Key
from kdelta.infer.profiles.profile import Selection, likely_names
from kdelta.infer.profiles.source import SourceLine, by_line, executed_addresses, line_text
from kdelta.lab.progress import Progress, Silent
from kdelta.spec.errors import KdeltaError, UserError
from kdelta.studies.profile.model import LineCost, ProfileViews
from kdelta.studies.recorded.recorded import Recorded, read_lines, texts_of, work_of_run


class Views(msgspec.Struct, frozen=True):
    """What is asked for: the calls from the top, callers of functions, source lines, functions by
    instruction. part: what of the whole is not shown of calls.
    """

    calls: bool = False
    callers: tuple[str, ...] = ()
    source: bool = False
    annotate: tuple[str, ...] = ()
    part: float = 0.01

    @property
    def any(self) -> bool:
        """Whether anything is."""
        return bool(self.calls or self.callers or self.source or self.annotate)


async def views_of(
    one: Recorded, regions: Sequence[str], selection: Selection, asked: Views, progress: Progress
) -> ProfileViews:
    """The views of these regions. UserError for a function that did nothing in them, and where the
    kernel that is needed is not there any more.
    """
    profiles = profiles_named(one, regions)
    tree = merged_calls(profiles, selection) if asked.calls or asked.callers else None
    lines = SourceLines()
    unlined: tuple[str, ...] = ()
    by_source: tuple[LineCost, ...] | None = None
    if asked.source:
        lines = await lines_of(one, profiles, selection, progress)
        text = texts_of(one.kernel)
        costs = by_line(profiles, selection, lines).items()
        by_source = tuple(
            LineCost(line, line_text(line, text), count)
            for line, count in sorted(costs, key=lambda item: (-item[1], item[0]))
        )
        unlined = unlined_origins(lines, profiles, selection)
    named = [key for name in asked.annotate for key in find_functions(profiles, name)]
    if named and not asked.source:
        # Of a few functions it takes no time that is worth a word.
        lines = await lines_of(one, profiles, selection, Silent(), frozenset(named))
    functions = tuple(
        annotated(profiles, key, selection, disassembler(one, key[0]), lines.line) for key in named
    )
    return ProfileViews(
        tree=tree if asked.calls else None,
        callers=tuple(
            (key, callers(tree, key))
            for name in asked.callers
            for key in find_functions(profiles, name)
            if tree is not None
        ),
        lines=by_source,
        unlined=unlined,
        annotated=functions,
        places=_places(one, functions),
        part=asked.part,
    )


def _places(one: Recorded, functions: Sequence[AnnotatedFunction]) -> dict[tuple[str, int], str]:
    """The lines of source that functions are from, where it is at hand."""
    text = texts_of(one.kernel)
    found = {}
    for function in functions:
        for place in {insn.place for insn in function.insns if insn.place}:
            line = SourceLine(function.key[0], place[0], place[1], function.key[1])
            if said := line_text(line, text):
                found[place] = said
    return found


def profiles_named(one: Recorded, regions: Iterable[str]) -> list[Profile]:
    """The profiles of these regions, in their order."""
    known = {profile.region: profile for profile in one.profiles}
    return [known[name] for name in regions if name in known]


async def lines_of(
    one: Recorded,
    profiles: Sequence[Profile],
    selection: Selection,
    progress: Progress,
    keys: frozenset[Key] | None = None,
) -> SourceLines:
    """Return the source lines of what these regions executed; of these functions, if any are named.
    None of a kernel that is not there any more.
    """
    if one.kernel is None:
        return SourceLines()
    work = one.work
    if work is None:
        with contextlib.suppress(KdeltaError):  # then of programs no line is known
            work = work_of_run(one.run, one.counts, one.kernel, progress.log)
    wanted = executed_addresses(profiles, selection, keys)
    step = f"source lines of {one.run.kernel_release}"
    progress.begin(step)
    found = await in_thread(read_lines, wanted, one.kernel, work, one.symbols)
    progress.end(step, f"{len(found.frames)} instructions")
    return found


def unlined_origins(
    lines: SourceLines, profiles: Sequence[Profile], selection: Selection
) -> tuple[str, ...]:
    """The origins of which no line is known at all."""
    known = {origin for origin, _ in lines.frames}
    return tuple(sorted(set(executed_addresses(profiles, selection)) - known))


def disassembler(one: Recorded, origin: str) -> Disassemble:
    """Who reads the code of an origin. UserError if unknown of which architecture it is."""
    if one.kernel is None:
        raise UserError(
            f"the kernel of run {one.run.id} is not here any more, and what is executed was not "
            "read before",
            f"fetch or build it again: kdelta build {one.run.kernel_spec}",
        )
    arch = one.kernel.arch
    if is_kernel(origin):
        table = code_table(one.symbols)
        names = (name for _, name in table.labels)
        named = list(zip(table.starts.tolist(), names, strict=True))
    else:
        named = [
            (f.address, f.name) for p in one.profiles for f in p.functions if f.origin == origin
        ]

    def read(blocks: Sequence[Block]) -> list[dict[int, str]]:
        return disassembled(blocks, named, arch)

    return read


def find_functions(profiles: Sequence[Profile], name: str) -> tuple[Key, ...]:
    """The functions that are called so, by their symbols or by the source; as NAME ORIGIN, those of
    that origin. UserError, with the nearest, if nothing that was executed is.
    """
    keys = dict.fromkeys((one.origin, one.name) for p in profiles for one in p.functions)
    exact = [key for key in keys if name in (key[1], f"{key[1]} {key[0]}")]
    plain = [key for key in keys if name == strip_suffixes(key[1])]
    found = tuple(dict.fromkeys([*exact, *plain]))
    if not found:
        known = likely_names(name, (key[1] for key in keys))
        raise UserError(f"no function {name!r} was executed there", f"there is: {known}")
    return found
