# SPDX-License-Identifier: GPL-2.0-or-later
"""Small profiles made by hand, for tests of what is shown of profiles."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kdelta.counts.profile import (
    CallTree,
    ExecutedCode,
    NodeEntry,
    Profile,
    ProfiledFunction,
    Rows,
    Task,
)

FUNCTION_BYTES = 0x1000
Stack = tuple[str, ...]
"""From the root down, each "origin:name", or a kernel's function by its name alone."""


def function_of(name: str, index: int) -> ProfiledFunction:
    origin, _, plain = name.rpartition(":")
    return ProfiledFunction(origin or "kernel", plain, FUNCTION_BYTES * (index + 1))


def _starts(functions: int) -> npt.NDArray[np.uint64]:
    return np.array([FUNCTION_BYTES * (i + 1) for i in range(functions)], np.uint64)


def _code(f: int) -> ExecutedCode:
    """The code of so many functions."""
    starts = _starts(f)
    narrow, wide = np.zeros(f, np.uint8), np.zeros(f, np.uint16)
    return ExecutedCode(
        block_address=starts,
        block_function=np.arange(f, dtype=np.int32),
        block_offset=np.zeros(f, np.uint64),
        text=b"\x90" * f,
        text_start=np.arange(f + 1, dtype=np.int64),
        group_block=np.arange(f, dtype=np.int32),
        group_insns=wide + 1,
        group_inner_loads=wide,
        group_inner_stores=wide,
        group_special=narrow,
        group_string=narrow,
        group_element_bytes=narrow,
        group_loads=(np.arange(f) % 3 == 1).astype(np.uint8),
        group_stores=narrow,
        insn_group=np.arange(f, dtype=np.int32),
        insn_address=starts,
        insn_size=narrow + 1,
        insn_loads=(np.arange(f) % 3 == 1).astype(np.uint8),
        insn_stores=narrow,
    )


def profile_of(
    stacks: Mapping[Stack, int],
    *,
    region: str = "work",
    iterations: int = 1,
    contexts: Mapping[Stack, int] | None = None,
    program: str = "work",
    specials: Sequence[str] = ("", "fence"),
) -> Profile:
    """A profile in which the last function of each stack executed so many instructions there.

    Each function is one block of one group of one instruction, of which a third loads and none
    stores. Roots are of context 0 (own), or as `contexts` says of their stack of one.
    """
    nodes: dict[Stack, int] = {}
    for stack in stacks:
        for depth in range(1, len(stack) + 1):
            nodes.setdefault(stack[:depth], len(nodes))
    names = list(dict.fromkeys(stack[-1] for stack in nodes))
    n, f = len(nodes), len(names)
    insns = {nodes[stack]: count for stack, count in stacks.items() if count}
    order = sorted(insns)
    function = np.array([names.index(stack[-1]) for stack in nodes], np.int32)
    zero = np.zeros(len(order), np.int64)
    starts = _starts(f)
    return Profile(
        region=region,
        iterations=iterations,
        calls="all",
        specials=tuple(specials),
        functions=tuple(function_of(name, i) for i, name in enumerate(names)),
        tasks=(Task(program),),
        tree=CallTree(
            parent=np.array([nodes.get(stack[:-1], -1) for stack in nodes], np.int32),
            function=function,
            task=np.zeros(n, np.int32),
            entry=np.array(
                [NodeEntry.CALL if len(stack) > 1 else NodeEntry.ROOT for stack in nodes], np.uint8
            ),
            context=np.array([(contexts or {}).get(stack[:1], 0) for stack in nodes], np.uint8),
            site=np.array(
                [starts[names.index(s[-2])] if len(s) > 1 else 0 for s in nodes], np.uint64
            ),
            entered=np.ones(n, np.int64),
        ),
        code=_code(f),
        rows=Rows(
            node=np.array(order, np.int32),
            group=function[order].astype(np.int32),
            entered=np.array([insns[node] for node in order], np.int64),
            lost=zero,
            elements=zero,
            mmio=zero,
        ),
    )
