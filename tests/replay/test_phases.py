# SPDX-License-Identifier: GPL-2.0-or-later
"""Phases against made programs whose calls are known."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.counts.symbols import Symbol
from kdelta.counts.trace import Trace
from kdelta.cpus.model import Cache
from kdelta.replay.phases import PhasedTrace
from kdelta.replay.simulate import PlacedBlocks, PreparedTrace
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.phase import REST, PhaseRule, phase_names

pytestmark = pytest.mark.long

OWN, INTERRUPTS, OTHER = range(3)
START = 0xC0100000
SPACE, BLOCK = 0x1000, 16
USER = -1
N_FUNCTIONS = 8
BLOCKS = 6  # of a function

SYMBOLS: list[Symbol] = [
    *((START + SPACE * f, "t", f"f{f}", "kernel") for f in range(N_FUNCTIONS)),
    (START + SPACE * N_FUNCTIONS, "t", "the_end", "kernel"),
    (START + SPACE * 2 + 8, "d", "data_is_no_code", "kernel"),
]


class Call(NamedTuple):
    """A function with what it calls in turn; the last of these may be a tail call."""

    function: int
    callees: tuple["Call", ...]
    tail: bool = False


def address(function: int, block: int) -> int:
    return 0x10000 if function == USER else START + SPACE * function + BLOCK * block


class Executed(NamedTuple):
    """An execution of a block, and the phase that it is in."""

    address: int
    context: int
    opened: "Opened | None"


class Opened:
    """A phase's call."""

    def __init__(self, rules: set[int]) -> None:
        self.rules = rules
        self.through: set[str] = set()

    def phase(self, rules: Sequence[PhaseRule]) -> str:
        for index in sorted(self.rules):
            if not rules[index].through or self.through & set(rules[index].through):
                return rules[index].name
        return REST


class Machine:
    """Executes calls and knows what it does."""

    def __init__(self, rules: Sequence[PhaseRule], interrupts: dict[int, Call]) -> None:
        self.rules = rules
        self.done: list[Executed] = []
        self._interrupts = interrupts
        self._context = OWN

    def program(self, context: int = OWN) -> None:
        self._context = context
        self._step(USER, 0, None)

    def run(self, call: Call, inside: Opened | None = None, context: int | None = None) -> None:
        if context is not None:
            self._context = context
        name = f"f{call.function}"
        rules = {i for i, rule in enumerate(self.rules) if name in rule.calls}
        if rules and not (inside and inside.rules & rules):
            inside = Opened(rules)
        if inside:
            inside.through.add(name)
        self._step(call.function, 0, inside)
        for number, callee in enumerate(call.callees):
            self.run(callee, inside)
            if not (call.tail and number + 1 == len(call.callees)):
                self._step(call.function, number + 1, inside)

    def _step(self, function: int, block: int, inside: Opened | None) -> None:
        self.done.append(Executed(address(function, block), self._context, inside))
        call = self._interrupts.pop(len(self.done), None)
        if call is not None and self._context == OWN:
            self.run(call, context=INTERRUPTS)
            self._context = OWN


def traced(done: Sequence[Executed], cuts: set[int]) -> Trace:
    """The trace of that, in pieces that end where the context changes, and at `cuts`."""
    addresses = sorted({one.address for one in done})
    pieces: dict[tuple[int, ...], int] = {}
    sequence, contexts, piece = [], [], []
    for index, one in enumerate(done):
        piece.append(addresses.index(one.address))
        last = index + 1 == len(done)
        if last or done[index + 1].context != one.context or index in cuts:
            sequence.append(pieces.setdefault(tuple(piece), len(pieces)))
            contexts.append(one.context)
            piece = []
    starts = np.cumsum([0, *(len(held) for held in pieces)])
    return Trace(
        region="made",
        addresses=np.array(addresses, dtype=np.uint64),
        sizes=np.full(len(addresses), BLOCK, dtype=np.uint32),
        insns=np.array([1 + a // BLOCK % 5 for a in addresses], dtype=np.uint32),
        physical=None,
        items=np.array([item for held in pieces for item in held], dtype=np.uint32),
        starts=starts.astype(np.uint64),
        sequence=np.array(sequence, dtype=np.uint32),
        contexts=np.array(contexts, dtype=np.uint8),
        truncated=False,
        iterations=1,
    )


def expected_insns(machine: Machine) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    names = phase_names(machine.rules)
    found = np.zeros((len(names), 3), dtype=np.int64)
    for one in machine.done:
        phase = one.opened.phase(machine.rules) if one.opened else REST
        found[names.index(phase), one.context] += 1 + one.address // BLOCK % 5
    return found


functions = st.integers(0, N_FUNCTIONS - 1)


def without_recursion(call: Call, above: frozenset[int] = frozenset()) -> Call:
    """A function that goes on at one place or at the other of its own is not derived from one that
    returns to itself.
    """
    above |= {call.function}
    callees = tuple(
        without_recursion(callee, above) for callee in call.callees if callee.function not in above
    )
    return Call(call.function, callees, call.tail)


calls = st.recursive(
    st.builds(Call, functions, st.just(())),
    lambda inner: st.builds(
        Call, functions, st.lists(inner, max_size=BLOCKS - 1).map(tuple), st.booleans()
    ),
    max_leaves=12,
).map(without_recursion)


@st.composite
def rule_lists(draw: st.DrawFn) -> tuple[PhaseRule, ...]:
    names = st.lists(functions.map(lambda f: f"f{f}"), min_size=1, max_size=2).map(tuple)
    through = st.one_of(st.just(()), names)
    rule = st.builds(PhaseRule, st.sampled_from(["a", "b", "c"]), names, through)
    return tuple(draw(st.lists(rule, max_size=4)))


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    interrupts = draw(st.dictionaries(st.integers(1, 40), calls, max_size=3))
    machine = Machine(draw(rule_lists()), interrupts)
    for call in draw(st.lists(calls, min_size=1, max_size=5)):
        machine.program()
        machine.run(call, context=OWN)
        if draw(st.integers(0, 4)) == 0:
            machine.program(OTHER)
            machine.run(draw(calls), context=OTHER)
    return machine


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(machines(), st.sets(st.integers(0, 60), max_size=12))
def test_each_instruction_is_in_the_phase_of_its_call(machine: Machine, cuts: set[int]) -> None:
    trace = traced(machine.done, cuts)
    found = PhasedTrace(trace, SYMBOLS, machine.rules)
    assert found.names == phase_names(machine.rules)
    assert found.insns.tolist() == expected_insns(machine).tolist()
    opened = {id(one.opened): one.opened for one in machine.done if one.opened}
    phases = [one.phase(machine.rules) for one in opened.values()]
    assert found.calls.tolist() == [phases.count(name) for name in found.names[:-1]] + [0]
    assert found.executions(len(trace.addresses)).sum(axis=1).tolist() == [
        [int(trace.executions(context)[block]) for context in range(3)]
        for block in range(len(trace.addresses))
    ]


@settings(max_examples=60, deadline=None)
@given(machines(), st.sets(st.integers(0, 60), max_size=12), st.sampled_from([1, 2, 4]))
@pytest.mark.slow
def test_misses_by_phase_are_those_of_the_replay(
    machine: Machine, cuts: set[int], ways: int
) -> None:
    """They add up to those by context; and each is where a cache written for clarity has it."""
    trace = traced(machine.done, cuts)
    kernel = trace.addresses >= START
    function = np.where(kernel, (trace.addresses - START) // SPACE, N_FUNCTIONS).astype(np.uint32)
    offset = np.where(kernel, (trace.addresses - START) % SPACE, 0).astype(np.uint64)
    placed = PlacedBlocks(function, offset)
    rng = np.random.default_rng(1)
    layouts = rng.permuted(np.tile(np.arange(20) * 48, (3, 1)), axis=1)[:, : N_FUNCTIONS + 1]
    layouts = layouts.astype(np.uint64)
    cache = Cache(4, ways, 16)
    phased = PhasedTrace(trace, SYMBOLS, machine.rules)
    found = phased.prepared(placed).replay(layouts, cache, warm=False)
    plain = PreparedTrace(trace, placed).replay(layouts, cache, warm=False)
    assert found.sum(axis=1).tolist() == plain.total.tolist()
    for layout, counted in zip(layouts, found, strict=True):
        assert counted.tolist() == _naive(machine, layout, cache)
    branches = phased.prepared(placed).replay(layouts, cache, kind="branches")
    plain = PreparedTrace(trace, placed).replay(layouts, cache, kind="branches")
    assert branches.sum(axis=(1, 2)).tolist() == plain.total.sum(axis=1).tolist()


def _naive(
    machine: Machine, layout: np.ndarray[tuple[int], np.dtype[np.uint64]], cache: Cache
) -> list[list[int]]:
    names = phase_names(machine.rules)
    found = [[0, 0, 0] for _ in names]
    sets: list[list[int]] = [[] for _ in range(cache.sets)]
    for one in machine.done:
        is_kernel = one.address >= START
        function = (one.address - START) // SPACE if is_kernel else N_FUNCTIONS
        at = int(layout[function]) + ((one.address - START) % SPACE if is_kernel else 0)
        phase = names.index(one.opened.phase(machine.rules) if one.opened else REST)
        for line in range(at // 16, (at + BLOCK - 1) // 16 + 1):
            held = sets[line % cache.sets]
            if line in held:
                held.remove(line)
            else:
                found[phase][one.context] += 1
            held.append(line)
            del held[: -cache.ways]
    return found


ROUTER = PhaseRule("router", ("receive", "receive_core"), ("forward",))
DELIVERY = PhaseRule("delivery", ("receive", "receive_core"))


def told(functions: Iterator[str] | Sequence[str], rules: Sequence[PhaseRule]) -> PhasedTrace:
    """A trace of the blocks "name" (an entry) and "name+n"."""
    names = sorted({step.partition("+")[0] for step in functions})
    symbols: list[Symbol] = [
        (START + SPACE * i, "t", name, "kernel") for i, name in enumerate(names)
    ]
    done = []
    for step in functions:
        name, _, block = step.partition("+")
        done.append(
            Executed(START + SPACE * names.index(name) + BLOCK * int(block or 0), OWN, None)
        )
    trace = traced(done, set())
    trace = msgspec.structs.replace(trace, insns=np.ones_like(trace.insns))
    return PhasedTrace(trace, symbols, rules)


def insns(phased: PhasedTrace) -> dict[str, int]:
    return dict(zip(phased.names, phased.insns.sum(axis=1).tolist(), strict=True))


def test_what_a_call_was_is_known_when_it_returns() -> None:
    """Two packets of one batch: the router's, and the one that is delivered; between them the
    loop that took them off the queue.
    """
    path = [
        *["poll", "receive", "receive_core", "forward", "receive_core+1", "receive+1", "poll+1"],
        *["receive", "receive_core", "deliver", "receive_core+1", "receive+1", "poll+2"],
    ]
    found = told(path, (ROUTER, DELIVERY))
    assert found.calls.tolist() == [1, 1, 0]
    assert insns(found) == {"router": 5, "delivery": 5, "rest": 3}


def test_versions_of_a_function_count_and_its_cold_part_does_not() -> None:
    rule = (PhaseRule("p", ("f",)),)
    assert told(["f.constprop.0"], rule).calls.tolist() == [1, 0]
    assert told(["f.isra.0.llvm.1234"], rule).calls.tolist() == [1, 0]
    assert told(["f.cold"], rule).calls.tolist() == [0, 0]
    assert told(["__pfx_f"], rule).calls.tolist() == [0, 0]
    assert told(["ff"], rule).calls.tolist() == [0, 0]


def test_a_loop_that_looks_like_calls_does_not_lose_the_call_that_it_is_in() -> None:
    """Labels within assembler look like functions; a deep stack would lose what it began with."""
    path = ["main", "receive", *["label_a", "label_b"] * 3000, "receive+1", "forward", "receive+2"]
    found = told([*path, "main+1"], (ROUTER,))
    assert found.calls.tolist() == [1, 0]
    assert insns(found) == {"router": 6004, "rest": 2}


def test_a_caller_may_come_again_within_the_call() -> None:
    path = ["main", "receive", "main", "read", "main+1", "receive+1", "main+1"]
    found = told(path, (PhaseRule("p", ("receive",)),))
    assert insns(found) == {"p": 5, "rest": 2}


def test_a_call_may_jump_over_a_landing_pad() -> None:
    symbols: list[Symbol] = [
        (START, "t", "f", "kernel"),
        (START + SPACE, "t", "g", "kernel"),
        (START + 2 * SPACE, "t", "h", "kernel"),
    ]
    for distance, inside in ((4, 2), (5, 0)):
        at = [START, START + SPACE + distance, START + 2 * SPACE, START + BLOCK]
        trace = traced([Executed(address, OWN, None) for address in at], set())
        found = PhasedTrace(trace, symbols, (PhaseRule("p", ("g",)),))
        assert found.executions(4).sum(axis=(0, 2)).tolist() == [inside, 4 - inside]


def test_a_stack_that_overflows_forgets_what_is_lost_anyway() -> None:
    path = [f"f{number}" for number in range(2000)]
    found = told([*path, "receive", "forward", "receive+1", "f1999+1"], (ROUTER,))
    assert found.calls.tolist() == [1, 0]


def test_nothing_at_all() -> None:
    found = told([], (ROUTER,))
    assert found.insns.tolist() == [[0, 0, 0]] * 2
    placed = PlacedBlocks(np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.uint64))
    layouts = np.zeros((2, 0), dtype=np.uint64)
    assert found.prepared(placed).replay(layouts, Cache(1, 1, 16)).shape == (2, 2, 3)


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        (PhaseRule("", ("f",)), "called ''"),
        (PhaseRule("rest", ("f",)), "called 'rest'"),
        (PhaseRule("p", ()), "begins nowhere"),
        (PhaseRule("p", ("f.isra.0",)), "'f.isra.0', which is no function"),
        (PhaseRule("p", ("f",), ("",)), "'', which is no function"),
        (PhaseRule("p", ("f g",)), "'f g', which is no function"),
    ],
)
def test_rules_that_mean_nothing_are_refused(rule: PhaseRule, what: str) -> None:
    with pytest.raises(UserError, match=what):
        told(["f"], (rule,))


def test_too_many_rules_are_refused() -> None:
    with pytest.raises(UserError, match="65 rules"):
        told(["f"], tuple(PhaseRule(f"p{n}", ("f",)) for n in range(65)))


def test_a_damaged_trace_is_refused() -> None:
    trace = traced([Executed(START, OWN, None)], set())
    trace.sequence.flags.writeable = True
    trace.sequence[0] = 7
    with pytest.raises(LabError, match="damaged"):
        PhasedTrace(trace, SYMBOLS, ())
