# SPDX-License-Identifier: GPL-2.0-or-later
"""A function's instructions with how often each was executed, of one run or of two side by side."""

import difflib
import itertools
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from kdelta.counts.disassembly import Block
from kdelta.counts.model import CONTEXTS
from kdelta.counts.profile import AddressCosts, Profile
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.profiles.matching import Key
from kdelta.infer.profiles.profile import Selection, code_part
from kdelta.spec.errors import LabError

_TARGET = re.compile(r"(?:0x)?[0-9a-f]+ <([^>+]+)(\+0x[0-9a-f]+)?>")
_COMMENT = re.compile(r"\s+(?:#|//|@|;)\s.*$")
_AWAY = re.compile(r"-?0x[0-9a-f]+\(%rip\)")
_ADDRESS = re.compile(r"\b(?:0x)?[0-9a-f]{5,}\b")
"""A figure of so many digits is an address, or depends on one."""


class Insn(msgspec.Struct, frozen=True):
    """An instruction of a function, how often it was executed, and its source line if known."""

    address: int
    size: int
    count: int
    text: str
    place: tuple[str, int] | None = None


class AnnotatedFunction(msgspec.Struct, frozen=True):
    """The executed instructions of a function in the order of their addresses, of all regions."""

    key: Key
    insns: tuple[Insn, ...]

    @property
    def total(self) -> int:
        """Instructions executed in it."""
        return sum(insn.count for insn in self.insns)


class InstructionPair(msgspec.Struct, frozen=True):
    """Instructions that are one on both sides; one alone has no partner. `alike`: in all but
    addresses.
    """

    a: Insn | None
    b: Insn | None
    alike: bool = True


Disassemble = Callable[[Sequence[Block]], Sequence[Mapping[int, str]]]
"""Of each block its instructions as text, by address."""


def chosen_rows(
    profile: Profile, selection: Selection, keys: frozenset[Key] | None = None
) -> Profile:
    """The profile with those rows alone that are looked at; of `keys` alone, if there are any."""
    is_chosen = np.array(
        [
            code_part(one.origin) in selection.parts
            and (keys is None or (one.origin, one.name) in keys)
            for one in profile.functions
        ],
        bool,
    )
    contexts = [CONTEXTS.index(one) for one in selection.contexts]
    rows = profile.rows
    wanted = np.isin(profile.tree.context[rows.node], contexts)
    if len(wanted):
        wanted &= is_chosen[profile.row_function()]
    columns = {name: getattr(rows, name)[wanted] for name in rows.__struct_fields__}
    return msgspec.structs.replace(profile, rows=type(rows)(**columns))


def annotated(
    profiles: Sequence[Profile],
    key: Key,
    selection: Selection,
    disassemble: Disassemble,
    line_of: Callable[[str, int], tuple[str, int] | None] = lambda _origin, _address: None,
) -> AnnotatedFunction:
    """A function's instructions over these regions. Raises LabError unless their counts add up to
    what the function executed.
    """
    found: dict[tuple[int, int, bytes], int] = {}
    blocks: dict[Block, None] = {}
    whole = 0
    for profile in profiles:
        chosen = chosen_rows(profile, selection, frozenset({key}))
        costs = chosen.address_costs()
        whole += int(chosen.row_costs().insns.sum())
        for address, code, count, block in _executed(chosen, costs):
            at = (address, len(code), code)
            found[at] = found.get(at, 0) + count
            blocks.setdefault(block)
    texts: dict[tuple[int, bytes], str] = {}
    for block, text in zip(blocks, disassemble(list(blocks)), strict=True):
        for start, size in _starts(block):
            code = block.code[start - block.address :][:size]
            texts.setdefault((start, code), text.get(start, "(unknown)"))
    insns = tuple(
        Insn(
            address, size, count, texts.get((address, code), "(unknown)"), line_of(key[0], address)
        )
        for (address, size, code), count in sorted(found.items())
    )
    made = AnnotatedFunction(key, insns)
    if made.total != whole:
        raise LabError(
            f"the instructions of {key[1]} add up to {made.total}, and it executed {whole}",
            "this is an error of kdelta; please report it",
        )
    return made


def _executed(profile: Profile, costs: AddressCosts) -> list[tuple[int, bytes, int, Block]]:
    """Address, bytes, count and block of each executed instruction."""
    code = profile.code
    first_insn = _insns_of_blocks(profile)
    blocks: dict[int, Block] = {}
    found = []
    columns = (costs.address, costs.size, costs.block, costs.costs.insns)
    for address, size, index, count in zip(*(one.tolist() for one in columns), strict=True):
        if index not in blocks:
            start = int(code.block_address[index] - code.block_offset[index])
            text = code.text[code.text_start[index] : code.text_start[index + 1]]
            blocks[index] = Block(start, text, first_insn[index])
        block = blocks[index]
        found.append((address, block.code[address - block.address :][:size], count, block))
    return found


def _insns_of_blocks(profile: Profile) -> dict[int, tuple[int, ...]]:
    """The sizes of the instructions of each block that has rows."""
    code = profile.code
    wanted = np.unique(code.group_block[profile.rows.group])
    of_insn = code.group_block[code.insn_group]
    return {
        block: tuple(code.insn_size[np.flatnonzero(of_insn == block)].tolist())
        for block in wanted.tolist()
    }


def _starts(block: Block) -> list[tuple[int, int]]:
    """Address and size of each instruction."""
    starts = itertools.accumulate(block.sizes, initial=block.address)
    return list(zip(starts, block.sizes, strict=False))


def plain_text(text: str, function: str) -> str:
    """An instruction as it is shown: targets by their names alone, those within the function by how
    far they are from its begin.
    """

    def target(found: re.Match[str]) -> str:
        name, offset = found[1], found[2] or ""
        return (offset or "+0x0") if name == function else f"{name}{offset}"

    return _TARGET.sub(target, text)


def _called(found: re.Match[str]) -> str:
    """What a function is called in its source; within one, nothing: all else may have moved."""
    return "" if found[2] else strip_suffixes(found[1])


def likeness(text: str) -> str:
    """What two instructions must share to be one: all but addresses, and where code lies."""
    return _ADDRESS.sub("", _AWAY.sub("(%rip)", _TARGET.sub(_called, _COMMENT.sub("", text))))


def side_by_side(
    a: Sequence[AnnotatedFunction], b: Sequence[AnnotatedFunction]
) -> tuple[InstructionPair, ...]:
    """The instructions of a function on both sides, in the order of either. Those of a stretch that
    has no like on the other side stand opposite each other where both have one.
    """
    ours = [(insn, likeness(insn.text)) for one in a for insn in one.insns]
    theirs = [(insn, likeness(insn.text)) for one in b for insn in one.insns]
    matcher = difflib.SequenceMatcher(
        None, [text for _, text in ours], [text for _, text in theirs], autojunk=False
    )
    found: list[InstructionPair] = []
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        left, right = ours[a0:a1], theirs[b0:b1]
        found += [
            InstructionPair(one[0] if one else None, other[0] if other else None, tag == "equal")
            for one, other in itertools.zip_longest(left, right)
        ]
    return tuple(found)
