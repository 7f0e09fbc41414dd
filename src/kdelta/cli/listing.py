# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta runs` and `report --list` print."""

from collections.abc import Iterable, Sequence

from kdelta.report.lines import ascii_only
from kdelta.store.model import Run, Study

_ID = 8
_KERNEL = 26
_OPERATIONS = 20
_REGIONS = 32
_WHOLE = "command"
"""The region of a program that marks none."""


def lines_text(lines: Iterable[str]) -> str:
    """The lines as one text."""
    return "".join(f"{line}\n" for line in lines)


def runs_text(runs: Sequence[Run], regions: Sequence[Sequence[str]]) -> str:
    """A line for each run; regions: the names of those that each counted."""
    if not runs:
        return "no runs yet: kdelta compare and kdelta run make some\n"
    length = _unique_length([run.id for run in runs])
    names = [_kernel_name(run) for run in runs]
    width = max(_KERNEL, *map(len, names))
    lines = [f"{'run':<{length}} {'started (UTC)':<16} {'status':<15} {'kernel':<{width}} workload"]
    lines += [
        f"{run.id[:length]} {run.started_text[:16]} {run.word:<15} {name:<{width}} "
        f"{run.workload} #{run.perturbation}{_counted(found)}"
        for name, run, found in zip(names, runs, regions, strict=True)
    ]
    return lines_text(lines)


def _counted(regions: Sequence[str]) -> str:
    """The regions of a run by name, or how many they are."""
    names = ascii_only(", ".join(regions))
    if not names or list(regions) == [_WHOLE]:
        return ""
    return f": {names if len(names) <= _REGIONS else f'{len(regions)} regions'}"


def _kernel_name(run: Run) -> str:
    """The kernel, and how it was changed; what parses that is imported only if there is need."""
    from kdelta.report.names import kernel_name  # noqa: PLC0415

    return ascii_only(kernel_name(run.kernel_spec, run.kernel_release))


def studies_text(studies: Sequence[Study], columns: int) -> str:
    """Return a line for each study: its operations, and as much of its answer as a line holds."""
    if not studies:
        return "no studies yet: kdelta compare makes one\n"
    length = _unique_length([study.id for study in studies])
    width = max(len("operations"), *(len(_operations(study)) for study in studies))
    head = f"{'study':<{length}} {'started (UTC)':<16} {'kind':<8} {'operations':<{width}} answer"
    lines = [head]
    for study in studies:
        start = f"{study.id[:length]} {study.started_text[:16]} {study.kind:<8} "
        start += f"{_operations(study):<{width}} "
        lines.append((start + _cut(study.answer, columns - 1 - len(start))).rstrip())
    return lines_text(lines)


def _operations(study: Study) -> str:
    return _cut(ascii_only(study.operations), _OPERATIONS)


def _cut(text: str, width: int) -> str:
    """The first words of a text that fit."""
    text = ascii_only(text.replace("\n", " "))
    if len(text) <= width:
        return text
    return text[: width - 3].rpartition(" ")[0].rstrip(",.;:") + "..."


def _unique_length(ids: Sequence[str]) -> int:
    """How much of the ids distinguishes them."""
    longest = max(map(len, ids))
    lengths = range(_ID, longest)
    return next((n for n in lengths if len({one[:n] for one in ids}) == len(ids)), longest)
