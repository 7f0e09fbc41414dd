# SPDX-License-Identifier: GPL-2.0-or-later
"""What an export is, what it is told besides the profiles, and how names and figures are put."""

import difflib
import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from kdelta import __version__
from kdelta.counts.arrays import I64
from kdelta.counts.model import KERNEL
from kdelta.counts.profile import MMIO, CostColumns, Profile, ProfiledFunction
from kdelta.counts.source_lines import SourceLines
from kdelta.counts.symbols import NO_SYMBOL
from kdelta.spec.errors import LabError, UserError

PLAIN = ("insns", "loads", "stores", "string-bytes", "string-iterations")
"""The columns that each profile has; the kinds of its special instructions are further ones."""

_TITLES: Mapping[str, str] = {
    "insns": "instructions",
    "string-bytes": "bytes of string operations",
    "string-iterations": "further iterations of string operations",
}


class Naming(msgspec.Struct, frozen=True):
    """What an export says of where its figures are from. Empty: not said.

    column: what formats that have one figure a stack hold. lines: of what has debug info.
    """

    kernel: str = ""
    release: str = ""
    machine: str = ""
    workload: str = ""
    command: str = ""
    run: str = ""
    column: str = "insns"
    lines: SourceLines = SourceLines()

    @property
    def creator(self) -> str:
        """Which program wrote it."""
        return f"kdelta {__version__}"

    @property
    def title(self) -> str:
        """The run in a line."""
        words = [self.workload, f"on {self.kernel}" if self.kernel else "", self.release]
        return clean(" ".join(word for word in words if word)) or "kdelta"

    def facts(self) -> dict[str, str]:
        """What is known, by name."""
        names = ("kernel", "release", "machine", "workload", "command", "run")
        return {name: clean(getattr(self, name)) for name in names if getattr(self, name)}


Sums = Counter[tuple[str, str]]
"""What an export holds: of each (region, column) its total, and by ("", column) that of all
regions. A format may tell only one of the two.
"""


class Export(msgspec.Struct, frozen=True):
    """A format that other programs open.

    make: the whole file. read: reads a file that was made, for the sums in it. suffix: what its
    files end with. binary: not for a terminal. one_column: it has one figure a stack.
    """

    name: str
    suffix: str
    summary: str
    make: Callable[[Sequence[Profile], Naming], bytes]
    read: Callable[[bytes, Naming], Sums]
    binary: bool = False
    one_column: bool = True

    def made(self, profiles: Sequence[Profile], naming: Naming) -> bytes:
        """The file, after its sums were compared with the profiles'; LabError if they differ.

        Raises UserError for a column that no profile has.
        """
        columns = columns_of(profiles)
        if naming.column not in columns:
            raise unknown("column", naming.column, columns)
        data = self.make(profiles, naming)
        self.check(data, profiles, naming)
        return data

    def check(self, data: bytes, profiles: Sequence[Profile], naming: Naming) -> None:
        """Raises LabError unless what stands in a file adds up to the profiles."""
        columns = (naming.column,) if self.one_column else columns_of(profiles)
        asked: Sums = Counter()
        for profile in profiles:
            costs = figures(profile.row_costs())
            for column in columns:
                whole = int(costs[column].sum()) if column in costs else 0
                for region in ("", clean(profile.region)):
                    asked[region, column] += whole
        found = self.read(data, naming)
        # Nothing at all was found: then at least the totals have to be zero.
        whole_regions = {region == "" for region, _ in found} or {True}
        for region, column in sorted({*asked, *found}):
            want, have = asked[region, column], found[region, column]
            if (region == "") in whole_regions and want != have:
                of_region = f" of {region}" if region else ""
                raise LabError(
                    f"the {self.name} export{of_region} adds up to {have} {column}, "
                    f"and the profile to {want}",
                    "nothing was written; this is a fault in kdelta",
                )


def figures(costs: CostColumns) -> dict[str, I64]:
    """The columns by their names, the plain ones first."""
    return {
        "insns": costs.insns,
        "loads": costs.loads,
        "stores": costs.stores,
        "string-bytes": costs.string_bytes,
        "string-iterations": costs.string_iterations,
        **{kind: costs.specials[kind] for kind in sorted(costs.specials)},
    }


def matrix(costs: CostColumns, columns: Sequence[str]) -> I64:
    """The figures of these columns: (n, columns)."""
    found, nothing = figures(costs), np.zeros(len(costs), np.int64)
    return np.stack([found.get(column, nothing) for column in columns], axis=1)


def columns_of(profiles: Sequence[Profile]) -> tuple[str, ...]:
    """The columns of these profiles: the plain ones and every special kind that was met."""
    kinds: set[str] = set()
    for profile in profiles:
        met = np.unique(profile.code.group_special[profile.rows.group])
        kinds |= {profile.specials[kind] for kind in met.tolist() if kind}
        kinds |= {MMIO} if profile.rows.mmio.any() else set()
    return (*PLAIN, *sorted(kinds))


def column_title(column: str) -> str:
    """A column's name for people."""
    return _TITLES.get(column, column)


def column_of(title: str) -> str:
    """The column with that title."""
    return next((column for column, one in _TITLES.items() if one == title), title)


def unknown(what: str, name: str, names: Sequence[str]) -> UserError:
    """Return the slip of a name that is none of these, with the nearest one."""
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    asked = f'did you mean "{near[0]}"? ' if near else ""
    hint = f"{asked}the {what}s: {', '.join(names)}"
    return UserError(f'"{clean(name)}" is no {what}', hint, (name, near[0]) if near else None)


@functools.lru_cache(maxsize=65536)
def clean(name: str) -> str:
    """A name in one line: what steers a terminal or ends a line becomes a space."""
    name = name.encode(errors="replace").decode()
    kept = "".join(c if c.isprintable() else " " for c in name)
    return " ".join(kept.split()) or "[unnamed]" if name else ""


def function_name(function: ProfiledFunction) -> str:
    """Name a function. Readers sum up what has one name, so the code of an object that no symbol
    covers has the object's name, too.
    """
    name = clean(function.name) or "[unnamed]"
    return f"{name} {clean(function.origin)}" if function.name == NO_SYMBOL else name


def function_label(function: ProfiledFunction) -> str:
    """Name a function and its object, for a format in which objects have no place of their own."""
    name = function_name(function)
    if function.origin == KERNEL or function.name == NO_SYMBOL:
        return name
    return f"{name} {clean(function.origin)}"
