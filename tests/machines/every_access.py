# SPDX-License-Identifier: GPL-2.0-or-later
"""What the plugin in `accesses` wrote down: every access of kernel code to a line, by whom."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt

from kdelta.counts.symbols import NO_SYMBOL, SymbolTable

RECORD = np.dtype(
    [(name, "<u8") for name in ("insn", "vaddr", "physical", "cpu")]
    + [(name, "<u4") for name in ("size", "is_store")]
)
LINE = 64
THREADS = {
    "smpboot_thread_fn": "ksoftirqd",
    "rcu_gp_fqs_loop": "rcu_sched, rcu_preempt",
    "rcu_gp_kthread": "rcu_sched, rcu_preempt",
    "worker_thread": "kworker",
    "do_idle": "swapper",
}
"""The kernel's own threads by the functions that nothing else executes."""

_SWITCH = "__switch_to_asm"
_FROM_INTERRUPT = "restore_regs_and_return_to_kernel"
_TO_INTERRUPT = ("asm_sysvec_", "asm_common_interrupt")

_DRAW = Random(64)
_FACTORS = [_DRAW.getrandbits(64) | 1 for _ in RECORD.names or ()]
"""What makes a number of a record that no other one has."""

Use = tuple[int, int]
"""An instruction and a CPU."""

Lines = Mapping[tuple[int, int], Mapping[Use, list[int]]]
"""Reads, writes, and the bytes that they are of as bits, by line (its address, and a number where
several have that) and use."""


def by_region(file: Path, code: SymbolTable) -> list[Lines]:
    """Accesses, region by region, of all but the kernel's own threads; interrupts on their time
    belong to it. Those that go on into another line count for both.
    """
    records = np.memmap(file, RECORD, mode="r")
    begins = np.flatnonzero(records["insn"] == 0)
    return [
        _every_line(_measured(np.array(records[start + 1 : end]), code))
        for start, end in zip(begins, [*begins[1:], len(records)], strict=True)
    ]


class _Functions:
    """The instructions of a region that tell whose an access is, of those that access memory."""

    def __init__(self, records: npt.NDArray[np.void], code: SymbolTable) -> None:
        insns = np.unique(records["insn"])
        by_function: dict[str, list[int]] = {}
        for insn, index in zip(insns.tolist(), code.indexes(insns), strict=True):
            name = code.labels[index][1] if index >= 0 else NO_SYMBOL
            by_function.setdefault(name, []).append(insn)
        loads = np.unique(records["insn"][records["is_store"] == 0])
        switch, back = (by_function.get(name, []) for name in (_SWITCH, _FROM_INTERRUPT))
        # The first load is of the next task's stack pointer, after that of the last one is stored.
        self.switch = next((one for one in switch if one in loads), 0)
        self.interrupts = [
            one[0] for name, one in by_function.items() if name.startswith(_TO_INTERRUPT)
        ]
        self.last_of_interrupt = back[-1] if back else 0
        self.threads = [one for name in THREADS for one in by_function.get(name, [])]


def _measured(records: npt.NDArray[np.void], code: SymbolTable) -> npt.NDArray[np.void]:
    """Those of a region that are not a kernel thread's own."""
    functions = _Functions(records, code)
    keep = np.ones(len(records), bool)
    for cpu in np.unique(records["cpu"]):
        places = np.flatnonzero(records["cpu"] == cpu)
        tasks = _tasks(records[places], functions.switch)
        for task in np.unique(tasks):
            here = places[tasks == task]
            insns = records["insn"][here]
            if np.isin(insns, functions.threads).any():
                begins, ends = (
                    np.isin(insns, which)
                    for which in (functions.interrupts, functions.last_of_interrupt)
                )
                keep[here] = np.cumsum(begins) > np.cumsum(ends) - ends
    return records[keep]


def _tasks(records: npt.NDArray[np.void], switch: int) -> npt.NDArray[np.uint64]:
    """On whose time a CPU made each access: by where a task's stack pointer is kept."""
    at = np.flatnonzero(records["insn"] == switch)
    keys = np.zeros(len(at) + 1, np.uint64)
    keys[1:] = records["vaddr"][at]
    if len(at):
        keys[0] = records["vaddr"][at[0] - 1]
    return keys[np.searchsorted(at, np.arange(len(records)), side="right")]


def _counted(
    records: npt.NDArray[np.void],
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """Those that differ, the first one first, and how often each is there."""
    keys = np.zeros(len(records), np.uint64)
    for name, factor in zip(RECORD.names or (), _FACTORS, strict=True):
        keys += records[name] * np.uint64(factor)
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(first)
    return records[first[order]], counts[order]


def _every_line(records: npt.NDArray[np.void]) -> Lines:
    first: dict[int, int] = {}
    found: dict[tuple[int, int], dict[Use, list[int]]] = {}
    rows, counts = _counted(records)
    names = ("vaddr", "physical", "size", "insn", "cpu", "is_store")
    for vaddr, physical, size, insn, cpu, is_store, times in zip(
        *(rows[name].tolist() for name in names), counts.tolist(), strict=True
    ):
        for line in {physical // LINE, (physical + size - 1) // LINE}:
            if line * LINE // 4096 == physical // 4096:
                at = first.setdefault(line, (vaddr - physical + line * LINE) // LINE * LINE)
                done = found.setdefault((at, line), {}).setdefault((insn, cpu), [0, 0, 0])
                done[is_store] += times
                start = physical - line * LINE
                bits = (1 << size) - 1
                done[2] |= (bits << start if start >= 0 else bits >> -start) & ((1 << LINE) - 1)
    return found
