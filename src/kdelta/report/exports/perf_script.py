# SPDX-License-Identifier: GPL-2.0-or-later
"""Text as `perf script` prints it, one sample a stack, with what was executed as its period.

Each region is a process; the tasks of a program in a context are a thread. A sample's time is the
sum of the periods before it as microseconds, since some readers know times and no periods.
"""

import re
from collections import Counter
from collections.abc import Sequence

from kdelta.counts.model import KERNEL
from kdelta.counts.profile import Profile
from kdelta.report.exports.forest import Forest, ForestFrame, FrameKind, forest
from kdelta.report.exports.model import Export, Naming, Sums, clean, function_name

_SECOND = 1_000_000
_KALLSYMS = "[kernel.kallsyms]"
_OURS = "[kdelta]"
_HEADER = re.compile(r"^\S+ +(\d+)/\d+ \[000\] +\d+\.\d{6}: +(\d+) [\w-]+: $")


def perf_script(profiles: Sequence[Profile], naming: Naming) -> bytes:
    """The file's text."""
    trees = forest(profiles, naming)
    frames = [_frame(frame) for frame in trees.frames]
    lines = [f"# {name}: {fact}" for name, fact in naming.facts().items()]
    event = "instructions" if naming.column == "insns" else naming.column
    at = thread = 0
    for process, region in enumerate(trees.roots, 1):
        for top in trees.programs(region):
            thread += 1
            who = f"{_word(trees.label(top)):<16} {process:>7}/{thread}"
            for node in trees.below(top):
                if own := trees.own[node]:
                    when = f"{at // _SECOND}.{at % _SECOND:06}"
                    lines.append(f"{who} [000] {when:>16}: {own:>12} {event}: ")
                    lines += _stack(trees, node, frames)
                    at += own
    return ("\n".join(lines) + "\n").encode()


def _stack(trees: Forest, node: int, frames: Sequence[str]) -> list[str]:
    """The sample's stack, leaf first, without the program's own frame, and an empty line."""
    path = [trees.frame[one] for one in trees.path(node)]
    kept = [index for index in path if trees.frames[index].kind is not FrameKind.PROGRAM]
    return [*(frames[index] for index in reversed(kept)), ""]


def _frame(frame: ForestFrame) -> str:
    function = frame.function
    if function is None:
        return f"\t{0:16x} {frame.label}+0x0 ({_OURS})"
    origin = _KALLSYMS if function.origin == KERNEL else _word(function.origin)
    name = function_name(function)
    return f"\t{function.address:16x} {name}+0x0 ({origin})"


def _word(name: str) -> str:
    """A name without what ends it for readers: spaces and parentheses."""
    return re.sub(r"[\s()]", "_", clean(name)) or _OURS


def read_perf_script(data: bytes, naming: Naming) -> Sums:
    """The sum of all periods."""
    found = (_HEADER.match(line) for line in data.decode().split("\n"))
    return Counter({("", naming.column): sum(int(header[2]) for header in found if header)})


PERF_SCRIPT = Export(
    name="perf-script",
    suffix=".perf.txt",
    summary="text of perf script, for all that reads it",
    make=perf_script,
    read=read_perf_script,
)
