# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's work by system call: each is counted where its function begins, and all adds up."""

from collections.abc import Mapping

import msgspec
import numpy as np
import pytest

from kdelta.counts.model import Cost, FunctionCost, Iterations, RegionCounts
from kdelta.counts.profile import NodeEntry, Profile
from kdelta.infer.profiles.system_calls import (
    KernelCost,
    KernelCostChange,
    PartKind,
    kernel_parts,
    part_changes,
)
from kdelta.spec.errors import LabError
from kdelta.studies.against.study import call_names
from tests.profiles import Stack, profile_of

X86 = call_names("x86_64")
USER = "[unknown]:[user code]"
ENTRY = "entry_SYSCALL_64"
STACKS: dict[Stack, int] = {
    (USER,): 1000,
    (USER, ENTRY): 40,
    (USER, ENTRY, "do_syscall_64"): 25,
    (USER, ENTRY, "do_syscall_64", "__x64_sys_write"): 5,
    (USER, ENTRY, "do_syscall_64", "__x64_sys_write", "vfs_write"): 300,
    # A fault on the way of a call is a part of the call, and so is a function named like one.
    (USER, ENTRY, "do_syscall_64", "__x64_sys_write", "vfs_write", "asm_exc_page_fault"): 70,
    (USER, ENTRY, "do_syscall_64", "__x64_sys_write", "__x64_sys_getpid"): 2,
    (USER, ENTRY, "do_syscall_64", "__x64_sys_newuname"): 11,
    (USER, "asm_exc_page_fault"): 9,
    (USER, "asm_exc_page_fault", "handle_mm_fault"): 500,
    (USER, "asm_exc_divide_error"): 13,
    # A new task is one, although two functions are known to begin it.
    ("ret_from_fork_asm",): 21,
    ("ret_from_fork_asm", "ret_from_fork"): 2,
    ("ret_from_fork_asm", "schedule_tail"): 20,
    ("timer",): 77,
    ("kthread",): 99,
}
ENTRIES: dict[Stack, NodeEntry] = {
    (USER, ENTRY): NodeEntry.SYSCALL,
    (USER, "asm_exc_page_fault"): NodeEntry.EXCEPTION,
    (USER, "asm_exc_divide_error"): NodeEntry.EXCEPTION,
    ("timer",): NodeEntry.INTERRUPT,
}
CONTEXTS: dict[Stack, int] = {("timer",): 1, ("kthread",): 2}
TIMES: dict[Stack, int] = {
    (USER, ENTRY, "do_syscall_64", "__x64_sys_write"): 3,
    (USER, ENTRY, "do_syscall_64", "__x64_sys_newuname"): 2,
    (USER, "asm_exc_page_fault"): 4,
}


def made(entries: Mapping[Stack, NodeEntry] = ENTRIES) -> tuple[Profile, RegionCounts]:
    profile = profile_of(STACKS, contexts=CONTEXTS)
    nodes: dict[Stack, int] = {}
    for stack in STACKS:
        for depth in range(1, len(stack) + 1):
            nodes.setdefault(stack[:depth], len(nodes))
    entry, entered = profile.tree.entry.copy(), profile.tree.entered.copy()
    for stack, how in entries.items():
        entry[nodes[stack]] = how
    for stack, times in TIMES.items():
        entered[nodes[stack]] = times
    tree = msgspec.structs.replace(profile.tree, entry=entry, entered=entered)
    profile = msgspec.structs.replace(profile, tree=tree)
    return profile, RegionCounts("work", Iterations(), profile.function_costs())


def test_calls_are_counted_where_their_functions_begin_and_all_adds_up() -> None:
    profile, counts = made()
    found = kernel_parts(profile, counts, X86)
    assert found == (
        KernelCost(PartKind.SYSTEM_CALL, "write", 3, 5 + 300 + 70 + 2),
        KernelCost(PartKind.SYSTEM_CALL, "uname", 2, 11),
        KernelCost(PartKind.EXCEPTION, "page faults", 4, 509),
        KernelCost(PartKind.EXCEPTION, "other exceptions", 1, 13),
        KernelCost(PartKind.ENTRY, "entry and exit", None, 40 + 25),
        KernelCost(PartKind.NEW_TASK, "start of new tasks", 1, 21 + 22),
        KernelCost(PartKind.INTERRUPT, "interrupts", 1, 77),
    )
    own = sum(one.insns for one in found if one.kind is not PartKind.INTERRUPT)
    assert own == counts.cost("own", kernel=True).insns


def test_the_rest_of_an_exec_costs_and_is_no_call() -> None:
    """What an exec does as the new program hangs under a root, entered before it was that."""
    stack = (USER, ENTRY, "do_syscall_64", "__x64_sys_write")
    profile, counts = made()
    entered = np.where(profile.tree.entered == 3, 0, profile.tree.entered)
    tree = msgspec.structs.replace(profile.tree, entered=entered)
    found = kernel_parts(msgspec.structs.replace(profile, tree=tree), counts, X86)
    assert STACKS[stack]
    assert found[0] == KernelCost(PartKind.SYSTEM_CALL, "write", 0, 377)


def test_what_does_not_add_up_is_refused() -> None:
    profile, counts = made()
    one = FunctionCost("own", "kernel", "vfs_write", Cost(insns=1))
    wrong = msgspec.structs.replace(counts, functions=(*counts.functions, one))
    with pytest.raises(LabError, match="system calls and the rest add up to"):
        kernel_parts(profile, wrong, X86)


def test_a_tree_that_was_cut_above_a_call_is_refused() -> None:
    profile, counts = made({**ENTRIES, (USER, ENTRY, "do_syscall_64"): NodeEntry.FOLDED})
    with pytest.raises(LabError, match="too many paths of calls"):
        kernel_parts(profile, counts, X86)


@pytest.mark.parametrize(
    ("arch", "function", "name"),
    [
        ("x86_64", "__x64_sys_newfstat", "fstat"),
        ("x86_64", "__x64_sys_newfstatat", "newfstatat"),
        ("x86_64", "__ia32_compat_sys_ioctl", "ioctl (compat)"),
        ("x86_64", "__x64_sys_", ""),
        ("x86_64", "x64_sys_call", ""),
        ("x86_64", "ksys_write", ""),
        ("arm64", "__arm64_sys_openat", "openat"),
        ("arm64", "__arm64_sys_newfstat", "fstat"),
        ("riscv64", "__riscv_sys_sendfile64", "sendfile"),
        ("arm", "sys_mmap_pgoff", "mmap2"),
        ("arm", "sys_getuid16", "getuid"),
        ("arm", "sys_getuid", "getuid32"),
    ],
)
def test_names_of_calls(arch: str, function: str, name: str) -> None:
    assert call_names(arch).system_call(function) == name


def test_parts_of_two_runs_side_by_side() -> None:
    call, entry = PartKind.SYSTEM_CALL, PartKind.ENTRY
    old = (
        KernelCost(call, "read", 2, 20),
        KernelCost(call, "stat", 1, 50),
        KernelCost(entry, "entry and exit", None, 9),
    )
    new = (
        KernelCost(call, "statx", 1, 60),
        KernelCost(call, "read", 3, 30),
        KernelCost(entry, "entry and exit", None, 12),
    )
    found = part_changes(old, new)
    assert found == (
        KernelCostChange(call, "statx", 0, 1, 0, 60),
        KernelCostChange(call, "stat", 1, 0, 50, 0),
        KernelCostChange(call, "read", 2, 3, 20, 30),
        KernelCostChange(entry, "entry and exit", None, None, 9, 12),
    )
    assert [one.added for one in found] == [60, -50, 10, 3]
