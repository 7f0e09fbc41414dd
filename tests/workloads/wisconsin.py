# SPDX-License-Identifier: GPL-2.0-or-later
"""The Wisconsin benchmark's relations and the results of its queries, from their definition alone.

python -m tests.workloads.wisconsin prints what the workload has as expected.h.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache

Tuple = tuple[int | str, ...]
Rows = Iterable[Tuple]

UNIQUE1, UNIQUE2, ONE_PERCENT, UNIQUE3 = 0, 1, 6, 10
STRINGU1, STRINGU2, STRING4 = 13, 14, 15
INTEGERS = range(13)
STRINGS = range(13, 16)
NEW, OLD = 10001, 1491
_MASK = (1 << 64) - 1


def text_of(unique: int) -> str:
    """Seven letters of base 26, and 45 times x."""
    letters = ""
    for _ in range(7):
        unique, letter = divmod(unique, 26)
        letters = chr(ord("A") + letter) + letters
    return letters + "x" * 45


def tuple_of(unique1: int, unique2: int) -> Tuple:
    """All attributes of a tuple."""
    percent = unique1 % 100
    return (
        unique1,
        unique2,
        *(unique1 % n for n in (2, 4, 10, 20)),
        percent,
        *(unique1 % n for n in (10, 5, 2)),
        unique1,
        percent * 2,
        percent * 2 + 1,
        text_of(unique1),
        text_of(unique2),
        "AHOV"[unique2 % 4] * 4 + "x" * 48,
    )


def order(tuples: int, generator: int, prime: int, start: int) -> list[int]:
    """unique1 of each tuple: powers of a generator of the prime's field that are small enough."""
    found: list[int] = []
    seed = start
    while len(found) < tuples:
        if seed <= tuples:
            found.append(seed - 1)
        seed = seed * generator % prime
    return found


@cache
def relations() -> dict[str, list[Tuple]]:
    """The four relations by name."""
    made = {
        "onektup": order(1000, 279, 1009, 279),
        "tenktup1": order(10000, 2969, 10007, 2969),
        "tenktup2": order(10000, 2969, 10007, 4242),
    }
    found = {name: [tuple_of(u1, u2) for u2, u1 in enumerate(of)] for name, of in made.items()}
    return found | {"bprime": found["tenktup2"][:1000]}


def between(attribute: int, low: int, high: int) -> Rows:
    """A selection from TENKTUP1."""
    return [row for row in relations()["tenktup1"] if low <= int(row[attribute]) <= high]


def join_aselb(attribute: int) -> Rows:
    """TENKTUP1 with a tenth of TENKTUP2."""
    other = {row[attribute]: row for row in relations()["tenktup2"] if int(row[attribute]) < 1000}
    return [a + other[a[attribute]] for a in relations()["tenktup1"] if a[attribute] in other]


def join_abprime(attribute: int) -> Rows:
    """TENKTUP1 with BPRIME."""
    other = {row[attribute]: row for row in relations()["bprime"]}
    return [a + other[a[attribute]] for a in relations()["tenktup1"] if a[attribute] in other]


def join_cselaselb(attribute: int) -> Rows:
    """ONEKTUP with a tenth of TENKTUP1 and of TENKTUP2."""
    first = {row[attribute]: row for row in relations()["onektup"]}
    pairs = join_aselb(attribute)
    return [first[pair[attribute]] + pair for pair in pairs if pair[attribute] in first]


def grouped(what: Callable[[list[int]], int]) -> Rows:
    """An aggregate of unique3 by onePercent."""
    groups = defaultdict(list)
    for row in relations()["tenktup1"]:
        groups[row[ONE_PERCENT]].append(int(row[UNIQUE3]))
    return [(what(group),) for group in groups.values()]


def state(change: Callable[[Tuple], Tuple] = lambda row: row, more: Rows = ()) -> Rows:
    """One row that differs if TENKTUP1 does, after a change."""
    rows = [*map(change, relations()["tenktup1"]), *more]
    sums = [sum(int(row[i]) for row in rows) for i in INTEGERS]
    ends = [end(str(row[i]) for row in rows) for i in STRINGS for end in (min, max)]
    return [(len(rows), *sums, *ends)]


def updated(*attributes: int) -> Callable[[Tuple], Tuple]:
    """Tuples of which an attribute is the old value get the new one."""

    def change(row: Tuple) -> Tuple:
        values = list(row)
        for attribute in attributes:
            if row[attribute] == OLD:
                values[attribute] = NEW
        return tuple(values)

    return change


@cache
def results() -> dict[str, list[Tuple]]:
    """What each query gives, or the state that it leaves; of all of them, the last line."""
    whole = relations()["tenktup1"]
    inserted = state(more=[tuple_of(NEW, NEW)])
    found: dict[str, Rows] = {
        "select-1pct": between(UNIQUE2, 0, 99),
        "select-10pct": between(UNIQUE2, 792, 1791),
        "select-1pct-clustered": between(UNIQUE2, 0, 99),
        "select-10pct-clustered": between(UNIQUE2, 792, 1791),
        "select-1pct-nonclustered": between(UNIQUE1, 0, 99),
        "select-10pct-nonclustered": between(UNIQUE1, 792, 1791),
        "fetch-one-clustered": between(UNIQUE2, 2001, 2001),
        "fetch-1pct-clustered": between(UNIQUE2, 0, 99),
    }
    for ending, attribute in (("", UNIQUE2), ("-clustered", UNIQUE2), ("-nonclustered", UNIQUE1)):
        found[f"join-aselb{ending}"] = join_aselb(attribute)
        found[f"join-abprime{ending}"] = join_abprime(attribute)
        found[f"join-cselaselb{ending}"] = join_cselaselb(attribute)
    found["project-1pct"] = {(*row[2:7], row[STRING4]) for row in whole}
    found["project-100pct"] = {row[2:] for row in whole}
    for ending in ("", "-clustered"):
        found[f"min{ending}"] = [(min(int(row[UNIQUE2]) for row in whole),)]
        found[f"min-groups{ending}"] = grouped(min)
        found[f"sum-groups{ending}"] = grouped(sum)
    for ending in ("", "-indexed"):
        found[f"insert{ending}"] = inserted
        found[f"delete{ending}"] = state()
        found[f"update-key{ending}"] = state(updated(UNIQUE2))
    found["update-attribute-indexed"] = state(updated(UNIQUE1))
    found["total"] = state(updated(UNIQUE1, UNIQUE2))
    return {name: list(rows) for name, rows in found.items()}


def checksum(rows: Rows) -> int:
    """The sum of the rows' FNV-1a hashes: the same in whatever order."""
    whole = 0
    for row in rows:
        value = 0xCBF29CE484222325
        for byte in "|".join(map(str, row)).encode():
            value = (value ^ byte) * 0x100000001B3 & _MASK
        whole += value
    return whole & _MASK


def expected() -> str:
    """The text of expected.h."""
    head = [
        "/* SPDX-License-Identifier: GPL-2.0-or-later */",
        "/* Of each query: the rows of its result, or of the state it leaves, and their checksum,",
        " * from the definition of the relations (tests/workloads/wisconsin.py). */",
    ]
    lines = [
        f'{{"{name}", {len(rows)}, 0x{checksum(rows):016x}}},' for name, rows in results().items()
    ]
    return "\n".join([*head, *lines]) + "\n"


if __name__ == "__main__":
    print(expected(), end="")
