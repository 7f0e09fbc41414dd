# SPDX-License-Identifier: GPL-2.0-or-later
"""A front end along a trace, written for clarity alone: what the library is compared with."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kdelta.counts.arrays import U64
from kdelta.counts.trace import (
    DATA,
    JUMP_CALL,
    JUMP_CONDITIONAL,
    JUMP_DIRECT,
    JUMP_INDIRECT,
    JUMP_INDIRECT_CALL,
    JUMP_NONE,
    JUMP_RETURN,
    JUMP_SYSTEM,
    Trace,
)
from kdelta.cpus.front_end import FrontEnd, Predictor, RunAhead
from kdelta.cpus.model import CPU
from kdelta.replay.front_end.replay import EVENTS
from kdelta.replay.simulate import PlacedBlocks

from .traces import INTERRUPTS, CacheContents

STRAIGHT, TAKEN, AWAY = range(3)
DIRECT = (JUMP_CONDITIONAL, JUMP_DIRECT, JUMP_CALL)
WORD = 2**32


class Step(NamedTuple):
    """Straight code to a jump; `kind` says which one."""

    function: int
    offset: int
    size: int
    insns: int
    kind: int

    @property
    def end(self) -> tuple[int, int]:
        return self.function, self.offset + self.size

    @property
    def start(self) -> tuple[int, int]:
        return self.function, self.offset


def steps_of_pieces(trace: Trace, placed: PlacedBlocks) -> list[list[Step]]:
    assert trace.jumps is not None
    found = []
    for first, last in pairwise(trace.starts.tolist()):
        piece: list[Step] = []
        for block in (int(item) for item in trace.items[first:last] if not item & DATA):
            sizes = (trace.sizes[block], trace.insns[block], trace.jumps[block])
            step = Step(int(placed.function[block]), int(placed.offset[block]), *map(int, sizes))
            if piece and piece[-1].kind == JUMP_NONE and piece[-1].end == step.start:
                before = piece.pop()
                size, insns = before.size + step.size, before.insns + step.insns
                step = Step(before.function, before.offset, size, insns, step.kind)
            piece.append(step)
        found.append(piece)
    return found


def borders(executed: list[tuple[list[Step], int]]) -> list[tuple[Step | None, bool]]:
    """Of each piece: what its last step is followed by, and whether an interrupt comes first."""
    found: list[tuple[Step | None, bool]] = []
    for i, (_, context) in enumerate(executed):
        if i + 1 == len(executed):
            found.append((None, False))
            continue
        entered = executed[i + 1][1] == INTERRUPTS != context
        after = executed[i + 1 :]
        if entered:
            after = [(steps, other) for steps, other in after if other == context]
        found.append((after[0][0][0] if after else None, entered))
    return found


class Targets:
    """Where direct jumps go: what follows most, as it is not contradicted by as many others."""

    def __init__(self) -> None:
        self.votes: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}

    def vote(self, a: Step, b: Step, times: int) -> None:
        if a.kind not in DIRECT or a.end == b.start:
            return
        start, votes = self.votes.get(a.end, ((0, 0), 0))
        if votes and start == b.start:
            votes += times
        elif votes >= times:
            votes -= times
        else:
            start, votes = b.start, times - votes
        self.votes[a.end] = start, votes

    def outcome(self, a: Step, b: Step) -> int:
        if a.end == b.start and a.kind != JUMP_SYSTEM:
            return STRAIGHT
        if a.kind in (JUMP_NONE, JUMP_SYSTEM):
            return AWAY
        if a.kind in DIRECT and self.votes.get(a.end, ((0, 0), 0))[0] != b.start:
            return AWAY
        return TAKEN


def mix32(x: int) -> int:
    x = (x ^ x >> 16) * 0x85EBCA6B % WORD
    x = (x ^ x >> 13) * 0xC2B2AE35 % WORD
    return x ^ x >> 16


@dataclass
class Entry:
    tag: int | None = None
    counter: int = 0
    useful: int = 0
    target: int = 0


@dataclass
class Tables:
    """What the two predictors have in common. `path` has the newest branch last."""

    size: Predictor
    path: list[int]
    base: list[int]
    chance: int = 0
    tagged: list[list[Entry]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tagged = [[Entry() for _ in range(self.size.entries)] for _ in self.size.histories]

    def look_up(self, branch: int) -> tuple[list[Entry], list[int]]:
        """The entry of each table, and the tag that it should have."""
        entries, tags = [], []
        bits = self.size.entries.bit_length() - 1
        for table, length in zip(self.tagged, self.size.histories, strict=True):
            # A polynomial, by Horner's rule from the oldest branch to the newest.
            history = 0
            for mark in self.path[-length:]:
                history = (history * 0x2C9277B5 + mark) % WORD
            spread = (history ^ branch) * 0x9E3779B1 % WORD
            entries.append(table[(spread >> 1) >> (31 - bits)])
            tags.append(spread % 2**self.size.tag_bits)
        return entries, tags

    def renew(self, entries: list[Entry], tags: list[int], provider: int, new: Entry) -> None:
        """An entry in a table of longer history, after a misprediction."""
        first = provider + 1
        if first >= len(entries):
            return
        self.chance = (self.chance * 1664525 + 1013904223) % WORD
        if self.chance >> 31 and first + 1 < len(entries):
            first += 1
        for entry, tag in zip(entries[first:], tags[first:], strict=True):
            if not entry.useful:
                entry.tag, entry.counter, entry.target = tag, new.counter, new.target
                return
        for entry in entries[first:]:
            entry.useful -= 1


def moved(value: int, up: bool, most: int) -> int:
    return min(value + 1, most) if up else max(value - 1, 0)


class Conditional(Tables):
    use_other = 8
    asked = 0

    def wrong(self, branch: int, taken: bool) -> bool:
        self.asked += 1
        if self.asked % 2**18 == 0:
            for entry in (entry for table in self.tagged for entry in table):
                entry.useful //= 2
        entries, tags = self.look_up(branch)
        found = [i for i, entry in enumerate(entries) if entry.tag == tags[i]]
        at = branch % self.size.base_entries
        guess = self.base[at] >= 2
        if found:
            entry = entries[found[-1]]
            other = entries[found[-2]].counter >= 4 if len(found) > 1 else guess
            here = entry.counter >= 4
            new = entry.counter in (3, 4) and not entry.useful
            guess = other if new and self.use_other >= 8 else here
            if new and other != here:
                self.use_other = moved(self.use_other, other == taken, 15)
            entry.counter = moved(entry.counter, taken, 7)
            if other != here:
                entry.useful = moved(entry.useful, here == taken, 3)
        else:
            self.base[at] = moved(self.base[at], taken, 3)
        if guess != taken:
            provider = found[-1] if found else -1
            self.renew(entries, tags, provider, Entry(counter=4 if taken else 3))
        return guess != taken


class Indirect(Tables):
    def wrong(self, branch: int, target: int) -> bool:
        entries, tags = self.look_up(branch)
        found = [i for i, entry in enumerate(entries) if entry.tag == tags[i]]
        at = branch % self.size.base_entries
        guess = self.base[at]
        if found:
            entry = entries[found[-1]]
            other = entries[found[-2]].target if len(found) > 1 else guess
            here, sure = entry.target, entry.counter
            guess = here if sure else other
            if here != target and not sure:
                entry.target = target
            entry.counter = moved(sure, here == target, 3)
            if other != here and target in (here, other):
                entry.useful = int(here == target)
        else:
            self.base[at] = target
        if guess != target:
            provider = found[-1] if found else -1
            self.renew(entries, tags, provider, Entry(target=target))
        return guess != target


class Front:
    """One front end under one layout."""

    def __init__(self, cpu: CPU, front: FrontEnd, layout: U64, small: list[bool]) -> None:
        self.cpu, self.front, self.layout, self.small = cpu, front, layout, small
        self.path: list[int] = [0] * 1000
        self.conditional = front.conditional and Conditional(
            front.conditional, self.path, [1] * front.conditional.base_entries
        )
        self.indirect = front.indirect and Indirect(
            front.indirect, self.path, [0] * front.indirect.base_entries
        )
        self.returns, self.top = [0] * max(1, front.returns), 0
        self.btb = [CacheContents(cache) for cache in front.btb]
        self.l1i, self.op_cache = (
            CacheContents(cpu.l1i),
            front.op_cache and CacheContents(front.op_cache),
        )
        self.itlb = [CacheContents(cpu.itlb), CacheContents(cpu.itlb_small or cpu.itlb)]
        self.fetched = self.executed = self.asked = 0
        self.queue = [0] * (front.run_ahead.windows if front.run_ahead else 0)
        self.supplied = self.consumed = self.waited = 0
        self.consumed_at = list(self.queue)
        self.last_line: int | None = None
        self.last_window, self.straight = -1, False
        self.total = np.zeros((len(EVENTS), 3), dtype=np.uint64)
        self.by_function = np.zeros((len(EVENTS), len(layout)), dtype=np.uint64)

    def count(self, event: str, step: Step, context: int, n: int = 1) -> None:
        self.total[EVENTS.index(event), context] += np.uint64(n)
        self.by_function[EVENTS.index(event), step.function] += np.uint64(n)

    def start(self, step: Step) -> int:
        return int(self.layout[step.function]) + step.offset

    def last(self, step: Step) -> int:
        return self.start(step) + step.size - 1

    def numbers(self, step: Step, unit: int) -> range:
        return range(self.start(step) // unit, self.last(step) // unit + 1)

    def execute(self, step: Step, context: int) -> None:
        front, ahead = self.front, self.front.run_ahead
        window_bytes = front.fetch_bytes or self.cpu.l1i.line_bytes
        windows = self.numbers(step, window_bytes)
        shared = self.straight and windows[0] == self.last_window
        self.last_window = windows[-1]
        if front.fetch_bytes:
            self.count("fetch-windows", step, context, len(windows) - shared)
        time = step.insns * round(16 * front.cycles_per_insn)
        for window in windows:
            is_new = ahead is not None and not (shared and window == windows[0])
            if is_new:
                self.fetched = max(self.fetched, self.queue[0])
                self.executed = max(self.executed, self.fetched)
            first = max(window * window_bytes, self.start(step)) // self.cpu.l1i.line_bytes
            last = min((window + 1) * window_bytes - 1, self.last(step)) // self.cpu.l1i.line_bytes
            for line in range(first, last + 1):
                self.fetch(step, line, context)
            share = time // len(windows)
            if window == windows[-1]:
                share = time - share * (len(windows) - 1)
            self.executed += share
            self.supply(step, ahead if is_new else None, share, context)
            if is_new and ahead:
                self.fetched += round(16 * ahead.window_cycles)
                self.queue = [*self.queue[1:], self.executed]
        small = self.small[step.function] and self.cpu.itlb_small is not None
        for page in self.numbers(step, self.itlb[small].cache.line_bytes):
            if self.itlb[small].misses(page, page):
                self.count("itlb", step, context)
        if self.op_cache and front.op_cache:
            for window in self.numbers(step, front.op_cache.line_bytes):
                if self.op_cache.misses(window, window):
                    self.count("op-cache", step, context)

    def fetch(self, step: Step, line: int, context: int) -> None:
        if line == self.last_line:
            return
        asked = self.fetched if self.front.run_ahead else self.executed
        if self.l1i.misses(line, line):
            self.count("l1i", step, context)
            since = asked
            if self.front.next_line and self.last_line is not None and line == self.last_line + 1:
                since = min(since, self.asked)
            left = since + round(16 * self.front.miss_cycles) - self.executed
            if left > 0:
                self.count("l1i-exposed", step, context, (left + 8) // 16)
                self.executed += left
        self.last_line, self.asked = line, asked

    def branch(self, step: Step, after: Step, taken: bool, context: int) -> None:
        address, target = self.last(step), self.start(after) % WORD
        branch, wrong = mix32(address % WORD), False
        event = "return"
        if step.kind == JUMP_CONDITIONAL and self.conditional:
            event, wrong = "conditional", self.conditional.wrong(branch, taken)
        if step.kind in (JUMP_INDIRECT, JUMP_INDIRECT_CALL) and taken and self.indirect:
            event, wrong = "indirect", self.indirect.wrong(branch, target)
        if step.kind == JUMP_RETURN and taken and self.front.returns:
            wrong = self.returns[self.top] != target
            self.top = (self.top - 1) % self.front.returns
        if wrong:
            self.count(event, step, context)
        if taken:
            if step.kind in (JUMP_CALL, JUMP_INDIRECT_CALL) and self.front.returns:
                self.top = (self.top + 1) % self.front.returns
                self.returns[self.top] = (address + 1) % WORD
            self.known(step, address, context)
            mark = branch + mix32(target ^ 0x55555555) * 3
            self.path[:] = [*self.path[1:], mark % WORD]
        if wrong:
            self.redirect()

    def redirect(self) -> None:
        self.fetched, self.supplied = self.executed, self.consumed

    def supply(self, step: Step, ahead: RunAhead | None, time: int, context: int) -> None:
        """The same without a miss, in sixteenths; whole cycles are counted."""
        if ahead and ahead.delivery_cycles:
            self.supplied = max(self.supplied, self.consumed_at[0])
            if self.supplied > self.consumed:
                self.waited += self.supplied - self.consumed
                self.count("fetch-waits", step, context, self.waited // 16)
                self.waited %= 16
                self.consumed = self.supplied
            self.supplied += round(16 * ahead.delivery_cycles)
        self.consumed += time
        if ahead:
            self.consumed_at = [*self.consumed_at[1:], self.consumed]

    def known(self, step: Step, address: int, context: int) -> None:
        missed = []
        for level in self.btb:
            missed.append(level.misses(address // level.cache.line_bytes, address))
            if not missed[-1]:
                break
        if missed == [True, False]:
            self.count("btb-first", step, context)
            if self.front.run_ahead:
                self.fetched += round(16 * self.front.run_ahead.second_btb_cycles)
                self.supplied += round(16 * self.front.run_ahead.delivery_cycles)
        elif missed and all(missed):
            self.count("btb", step, context)
            self.redirect()


def reference(
    trace: Trace, placed: PlacedBlocks, layout: U64, cpu: CPU, small: list[bool]
) -> Front:
    """What one warm pass does, as Front has it."""
    pieces = steps_of_pieces(trace, placed)
    executed = [
        (pieces[piece], int(context))
        for piece, context in zip(trace.sequence, trace.contexts, strict=True)
        if pieces[piece]
    ]
    after = borders(executed)
    targets = Targets()
    times = np.bincount(trace.sequence, minlength=len(pieces))
    for piece, n in zip(pieces, times.tolist(), strict=True):
        for a, b in pairwise(piece):
            if n:
                targets.vote(a, b, n)
    for (piece, _), (follows, _) in zip(reversed(executed), reversed(after), strict=True):
        if follows is not None:
            targets.vote(piece[-1], follows, 1)
    assert cpu.front_end is not None
    made = Front(cpu, cpu.front_end, layout, small)
    for _ in ("to warm up", "measured"):
        made.total[:] = made.by_function[:] = 0
        for (piece, context), (next_one, entered) in zip(executed, after, strict=True):
            for step, then in zip(piece, [*piece[1:], next_one], strict=True):
                made.execute(step, context)
                outcome = AWAY if then is None else targets.outcome(step, then)
                made.straight = outcome == STRAIGHT
                if outcome == AWAY or then is None:
                    made.redirect()
                elif step.kind != JUMP_NONE:
                    made.branch(step, then, outcome == TAKEN, context)
            if entered:
                made.redirect()
                made.straight = False
    return made
