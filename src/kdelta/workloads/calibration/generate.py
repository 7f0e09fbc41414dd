# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of the calibration, as C text: deterministic, of a footprint and a flow each.

A *code* is a set of functions and a way to call them. What it works on is given by arguments: the
order of its calls, the words by which its conditionals decide and its data are chosen, and how
many bytes of data there are. So programs of one code execute the same instructions, and differ
in what is predicted and in what misses.
"""

import random
from collections.abc import Iterator
from typing import Literal

import msgspec

from kdelta.spec.timings import Flow

Words = Literal["constant", "random", "strided"]
INSNS_A_PASS = 100_000
"""About as many: 25 to 75 microseconds on a core of today."""
PASSES = 16
"""That are timed, and traced: each is other work where the order of calls is random."""
BEFORE = 2
"""Rounds of as many that go before, of which each is other work, too."""
_LEAST_CALLS, _MOST_CALLS = 256, 8000
_INSNS_A_STATEMENT = 4
_INSNS_A_WIDE_STATEMENT = 1.2
_INSNS_A_CALL = 12
WIDTH = 6
"""Operations side by side that wait for none of each other, in code that is `wide`: about as many
as cores of today can begin in a cycle.
"""


class ProgramSource(msgspec.Struct, frozen=True):
    """One program: C text and the arguments that its links are run with.

    Programs of one `code` have the same text, so that it is compiled and linked once; they differ
    in `arguments` (order of calls, words, bytes of data). `bodies` is the C text of a part of the
    functions, of whose object so many `copies` are linked, since compilers take their time;
    `c_source` has the rest. `relinks`: how many links of it tell something, at most. `data`: how
    functions touch the data, and by which words.
    """

    name: str
    code: str
    flow: Flow
    functions: int
    statements: int
    data: str
    data_bytes: int
    arguments: tuple[str, ...]
    relinks: int
    copies: int
    bodies: str
    c_source: str


class GeneratedCode(msgspec.Struct, frozen=True):
    """A set of functions.

    functions       how many there are (of a chain: all are called in each turn of it): `copies` of
                    as many bodies
    statements      in each function, of about 4 instructions
    call            how they are called: through a table of pointers, by a tree of comparisons and
                    direct calls, or by a chain of direct calls
    conditionals    in each function, which depend on the word of the call
    loop            how often the middle of each function is repeated, at most; 0: no loop
    data            what each function does with the data: nothing, a load whose place is known
                    beforehand, a load whose place depends on the one before, or a store
    called          so many of the functions, if it is not 0; the others only lie between them, as
                    code that is never executed does in programs: so what is executed is unevenly
                    spread over the sets of a cache, in each link otherwise
    wide            statements are one operation each, which waits for none of the last WIDTH - 1,
                    and jumps; functions begin at any byte, and no call waits for the one before. So
                    what is executed waits for what is fetched
    """

    name: str
    functions: int
    statements: int
    copies: int = 1
    call: Literal["pointer", "tree", "chain"] = "pointer"
    conditionals: int = 0
    loop: int = 0
    data: Literal["none", "load", "chase", "store"] = "none"
    wide: bool = False
    called: int = 0

    @property
    def calls(self) -> int:
        """Calls in a pass; of a chain whole turns of it."""
        each = _INSNS_A_WIDE_STATEMENT if self.wide else _INSNS_A_STATEMENT
        insns = self.statements * each * max(1.0, self.loop / 2) + _INSNS_A_CALL
        calls = min(_MOST_CALLS, max(_LEAST_CALLS, round(INSNS_A_PASS / insns)))
        if self.call == "chain":
            return max(1, round(calls / self.functions)) * self.functions
        return calls


class Use(msgspec.Struct, frozen=True):
    """A program of a code: with which order, words and data."""

    flow: Flow
    words: Words = "constant"
    data_bytes: int = 4096
    relinks: int = 30


def bodies_of(code: GeneratedCode) -> str:
    """The C text of its functions."""
    drawn = random.Random(f"kdelta {code.name}")
    bodies = code.functions // code.copies
    function = _wide_function if code.wide else _function
    parts = [
        f"/* {code.name}: {bodies} functions of {code.statements} statements */",
        '#include "data.h"',
        *(function(code, number, drawn) for number in range(bodies)),
    ]
    return "\n\n".join(parts) + "\n"


def source_of(code: GeneratedCode) -> str:
    """The C text of what calls them: their names have a prefix, which says of which copy one is."""
    bodies = code.functions // code.copies
    names = [
        f"{copy_prefix(copy)}f{number}" for copy in range(code.copies) for number in range(bodies)
    ]
    parts = [
        f"/* {code.name}: {code.copies} copies of {bodies} functions */",
        f"enum {{ FUNCTIONS = {code.functions}, CALLED = {code.called or code.functions} }};",
        f"enum {{ CALLS = {code.calls} }};",
        f"enum {{ PASSES = {PASSES}, BEFORE = {BEFORE} }};",
        '#include "calls.h"',
        "\n".join(f"function {name};" for name in names),
        _CALLERS[code.call](names, _WORDLESS if code.wide else _WITH_WORDS),
        "int main(int argc, char **argv)\n{\n    return calls_main(argc, argv, pass);\n}",
    ]
    return "\n\n".join(parts) + "\n"


def copy_prefix(copy: int) -> str:
    """What the names of that copy's functions begin with."""
    return f"copy{copy}_"


def _function(code: GeneratedCode, number: int, drawn: random.Random) -> str:
    lines = [
        f"__attribute__((noinline)) word f{number}(word a, uint32_t r)",
        "{",
        f"    word b = r + {_constant(drawn)}, c = a ^ {_constant(drawn)}, d = a + b;",
    ]
    lines += _data_lines(code, drawn)
    body = [_statement(drawn) for _ in range(code.statements)]
    # Conditionals stand at equal distances, and each has a few statements on either side.
    for which in range(code.conditionals):
        at = (which + 1) * len(body) // (code.conditionals + 1)
        body[at] = _conditional(which + number, drawn)
    if code.loop:
        first, last = len(body) // 3, 2 * len(body) // 3
        turns = 2 + drawn.getrandbits(16) % (code.loop - 1)
        body.insert(last, "}")
        body.insert(first, f"for (unsigned int i = 0; i < {turns}; i++) {{")
    lines += [f"    {line}" for line in body]
    return "\n".join([*lines, "    return a ^ b ^ c ^ d;", "}"])


def _wide_function(code: GeneratedCode, number: int, drawn: random.Random) -> str:
    """One whose operations do not depend on each other, nor on what other calls return."""
    names = "bcdefgh"[:WIDTH]
    lines = [
        f"{_ANYWHERE} word f{number}(word s, uint32_t r)",
        "{",
        "    word " + ", ".join(f"{name} = r" for name in names) + ";",
    ]
    until_jump = 1 + drawn.getrandbits(3)
    for which in range(code.statements):
        to = names[which % WIDTH]
        constant = 128 | drawn.getrandbits(7)
        forms = (f"SHORT_ADD({to}, s);", f"ADD({to}, s);", f"LONG_ADD({to}, {constant});")
        lines.append(f"    {forms[drawn.getrandbits(16) % len(forms)]}")
        until_jump -= 1
        if not until_jump:
            lines.append(f"    JUMP_OVER({drawn.getrandbits(4)});")
            until_jump = 3 + drawn.getrandbits(3)
    return "\n".join([*lines, f"    return {' ^ '.join(names[:2])};", "}"])


def _data_lines(code: GeneratedCode, drawn: random.Random) -> list[str]:
    place = drawn.getrandbits(24) & ~63
    return {
        "none": [],
        "load": [f"    d += LOAD(r ^ {place:#x}u);"],
        "chase": [f"    a = LOAD(((uint32_t)a & 56u) ^ r ^ {place:#x}u);"],
        "store": [f"    STORE(r ^ {place:#x}u, c);"],
    }[code.data]


def _constant(drawn: random.Random) -> str:
    return f"{drawn.getrandbits(30) | 1:#x}u"


def _statement(drawn: random.Random) -> str:
    to, one, other = _three(drawn.getrandbits(30))
    constant, shift = _constant(drawn), 1 + drawn.getrandbits(10) % 15
    forms = (
        f"{to} = ({to} ^ {constant}) + ({one} >> {shift});",
        f"{to} += ({one} << {shift}) ^ {other};",
        f"{to} = ({to} + {one}) ^ ({other} + {constant});",
        f"{to} ^= ({one} & {constant}) + {other};",
        f"{to} = {one} * {constant} + {to};",
        f"{to} -= ({one} | {other}) >> {shift};",
    )
    return forms[drawn.getrandbits(16) % len(forms)]


def _three(bits: int) -> list[str]:
    """Three different ones of the four variables."""
    left, chosen = list("abcd"), []
    for _ in range(3):
        bits, at = divmod(bits, len(left))
        chosen.append(left.pop(at))
    return chosen


def _conditional(which: int, drawn: random.Random) -> str:
    """A branch that goes either way for a random word; its sides are as long as each other."""
    bit = 7 + which % 20
    one, other = _constant(drawn), _constant(drawn)
    return (
        f"if (r & {1 << bit:#x}u) {{ ARM_OF_BRANCH(a); a += {one}; b ^= c; }} "
        f"else {{ ARM_OF_BRANCH(b); b -= {other}; a ^= d; }}"
    )


_ANYWHERE = '__attribute__((noinline, optimize("align-functions=1")))'
_WITH_WORDS = ("WORDS_OF(k);", "a, NEXT_WORD")
_WORDLESS = ("", "k, k")
"""What a pass begins with, and what functions are called with."""
_PASS = """PLACED_ONCE void pass(unsigned int k)
{{
    {before}
    word a = k;

{loop}
    result = a;
}}"""


def _each_call(call: str, words: tuple[str, str]) -> str:
    loop = f"    for (unsigned int i = 0; i < CALLS; i++)\n        a += {call};"
    return _PASS.format(before=words[0], loop=loop)


def _through_pointers(names: list[str], words: tuple[str, str]) -> str:
    table = f"static function *const table[] = {{{', '.join(names)}}};\n\n"
    return table + _each_call(f"table[order[k][i]]({words[1]})", words)


def _through_a_tree(names: list[str], words: tuple[str, str]) -> str:
    cases = [f"    case {number}: return {name}(a, r);" for number, name in enumerate(names[1:], 1)]
    tree = [
        "PLACED_ONCE word tree(unsigned int n, word a, uint32_t r)\n{",
        *("    switch (n) {", *cases, f"    default: return {names[0]}(a, r);"),
        "    }\n}\n\n",
    ]
    return "\n".join(tree) + _each_call(f"tree(order[k][i], {words[1]})", words)


def _through_a_chain(names: list[str], words: tuple[str, str]) -> str:
    calls = "\n".join(f"        a += {name}({words[1]});" for name in names)
    loop = f"    for (unsigned int i = 0; i < CALLS / FUNCTIONS; i++) {{\n{calls}\n    }}"
    return _PASS.format(before=words[0], loop=loop)


_CALLERS = {"pointer": _through_pointers, "tree": _through_a_tree, "chain": _through_a_chain}

_DATA = (
    *(Use("fixed", "random", kib << 10, relinks=3) for kib in (16, 256, 1024, 8192)),
    Use("fixed", "strided", 8 << 20, relinks=3),
)
_SET: tuple[tuple[GeneratedCode, tuple[Use, ...]], ...] = (
    (GeneratedCode("calls-8k", 40, 10), (Use("random"),)),
    (GeneratedCode("calls-24k", 120, 11), (Use("fixed"), Use("random"), Use("mixed"))),
    (GeneratedCode("calls-32k", 140, 13, copies=2), (Use("random"),)),
    (GeneratedCode("calls-40k", 160, 14, copies=2), (Use("fixed"), Use("random"))),
    (GeneratedCode("calls-64k", 250, 15, copies=2), (Use("fixed"), Use("random"), Use("mixed"))),
    (GeneratedCode("calls-512k", 1000, 34, copies=20), (Use("random"), Use("fixed"))),
    (GeneratedCode("calls-2m", 4000, 36, copies=80), (Use("random", relinks=10),)),
    (GeneratedCode("calls-4m", 4000, 72, copies=80), (Use("random", relinks=10),)),
    (GeneratedCode("sparse-16k", 240, 11, copies=2, called=80), (Use("random"),)),
    (
        GeneratedCode("sparse-24k", 360, 11, copies=3, called=120),
        (Use("fixed"), Use("random"), Use("mixed")),
    ),
    (GeneratedCode("sparse-32k", 480, 11, copies=4, called=160), (Use("random"),)),
    (GeneratedCode("sparse-48k", 600, 15, copies=4, called=200), (Use("random"),)),
    (
        GeneratedCode("sparse-branches-24k", 300, 14, copies=2, conditionals=2, called=100),
        (Use("fixed", "random"), Use("random", "random")),
    ),
    (GeneratedCode("sparse-wide-24k", 204, 40, copies=2, wide=True, called=102), (Use("fixed"),)),
    (
        GeneratedCode("branches-32k", 120, 14, conditionals=2),
        (Use("fixed"), Use("fixed", "random"), Use("random", "random")),
    ),
    (
        GeneratedCode("branches-128k", 320, 22, copies=4, conditionals=3),
        (Use("fixed", "random"), Use("random")),
    ),
    (GeneratedCode("tree-16k", 64, 13, call="tree"), (Use("random"),)),
    (GeneratedCode("chain-32k", 250, 5, copies=2, call="chain"), (Use("fixed"),)),
    (GeneratedCode("chain-256k", 1500, 8, copies=15, call="chain"), (Use("fixed"),)),
    (GeneratedCode("loops-48k", 160, 18, copies=2, loop=9), (Use("loop"), Use("random"))),
    (GeneratedCode("long-64k", 12, 360, copies=4), (Use("random"),)),
    (GeneratedCode("wide-24k", 102, 40, call="chain", wide=True), (Use("fixed"),)),
    (GeneratedCode("wide-64k", 272, 40, copies=4, call="chain", wide=True), (Use("fixed"),)),
    (GeneratedCode("wide-256k", 1088, 40, copies=16, call="chain", wide=True), (Use("fixed"),)),
    (GeneratedCode("wide-short-24k", 220, 16, copies=2, call="chain", wide=True), (Use("fixed"),)),
    (GeneratedCode("wide-calls-24k", 102, 40, wide=True), (Use("fixed"),)),
    (GeneratedCode("wide-calls-64k", 272, 40, copies=4, wide=True), (Use("fixed"),)),
    (GeneratedCode("loads", 100, 16, data="load"), _DATA),
    (GeneratedCode("chases", 100, 16, data="chase"), _DATA),
    (GeneratedCode("stores", 100, 16, data="store"), _DATA),
)
_QUICK_CODES = (
    *("calls-24k", "calls-40k", "calls-64k", "branches-32k", "chain-32k", "loads"),
    *("sparse-24k", "wide-24k", "wide-64k"),
)
QUICK_RELINKS = 10


def programs(*, quick: bool = False) -> Iterator[ProgramSource]:
    """The default set, or fewer programs and fewer links."""
    for code, uses in _SET:
        if quick and code.name not in _QUICK_CODES:
            continue
        texts = bodies_of(code), source_of(code)
        for use in uses:
            relinks = min(use.relinks, QUICK_RELINKS) if quick else use.relinks
            yield program(code, use, texts, relinks)


def program(code: GeneratedCode, use: Use, texts: tuple[str, str], relinks: int) -> ProgramSource:
    """One program of a code, whose `texts` are known: of the bodies, and of what calls them."""
    words = "" if use.words == "constant" else use.words
    size = f"{use.data_bytes >> 10}k" if code.data != "none" else ""
    return ProgramSource(
        name="-".join(filter(None, (code.name, use.flow, words, size))),
        code=code.name,
        flow=use.flow,
        functions=code.functions,
        statements=code.statements,
        data=f"{code.data}-{use.words}" if code.data != "none" else "none",
        data_bytes=use.data_bytes if code.data != "none" else 0,
        arguments=(use.flow, use.words, str(use.data_bytes)),
        relinks=relinks,
        copies=code.copies,
        bodies=texts[0],
        c_source=texts[1],
    )
