# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta bisect`: its arguments."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.measures import with_measures
from kdelta.cli.options import CyclesOptions, LikeOptions, OfProgram, with_model
from kdelta.cli.plain_options import PrintOptions, explain_option
from kdelta.cli.publish import publish, shown_lab
from kdelta.host.command import log_to_stderr
from kdelta.host.files import write_atomic
from kdelta.host.interrupt import run_async
from kdelta.lab.lab import open_store
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import TreeSpec
from kdelta.spec.option import Argument, HelpSection, option
from kdelta.spec.words import parse_kernel_words
from kdelta.studies.bisect.mail import bisect_mails
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect


class BisectOptions(msgspec.Struct, frozen=True):
    """What is written of the commits that were found."""

    log_file: Annotated[
        Path | None,
        option(
            "--log",
            metavar="FILE",
            values="FILE",
            group=HelpSection.SHOWN,
            help="Write what git bisect replay takes: FILE, FILE.2, ...",
        ),
    ] = None
    mail: Annotated[
        bool,
        option(
            "--mail", group=HelpSection.SHOWN, help="Print a mail for each commit that slows down."
        ),
    ] = False
    explain: Annotated[
        int,
        explain_option(help="Show N regions of each commit."),
    ] = 8


def bisect(
    words: Annotated[
        list[str],
        Argument(
            metavar="GOOD..BAD [TREE] [+CHANGE...] [-- COMMAND]",
            help="Two commits, the repository, and what all kernels have in common.",
            kernels=True,
        ),
    ],
    *,
    asked: partial[BisectRequest],
    like: LikeOptions,
    cycles: CyclesOptions,
    program: OfProgram,
    written: BisectOptions,
    printed: PrintOptions,
) -> int:
    """Find all commits of a range that make a kernel faster or slower.

    Builds and runs both ends, rules out what reaches no executed code, and searches the others by
    halves, also into merges. Effects have signs and add up, so all commits are found and not one;
    what differs by placement alone is never named. Interrupted, it goes on where it was.
    """
    if later := [word for word in words[1:] if ".." in word and ".." not in words[0]]:
        raise UserError(
            f"cannot bisect {words[0]}: the range {later[0]} comes first",
            f"kdelta bisect {later[0]} {words[0]}",
        )
    folder, changes = _tree(words[1:], asked.keywords.get("repository", "."))
    request = asked(repository=folder, range=words[0], changes=changes, program=program)
    request, cycles = with_measures(request, cycles)
    asks, cpu = with_model(request.lab, like, cycles, priced="layouts" in asked.keywords)
    request = msgspec.structs.replace(request, lab=asks, cpu=cpu)
    with open_store() as store:
        with shown_lab(store) as lab:
            report = run_async(run_bisect(request, lab))
        if written.log_file is not None:
            _write_logs(report, written.log_file)
        mails = bisect_mails(report) if written.mail and not printed.json else None
        shown = {"explain": written.explain}
        publish(store, "bisect", [report], printed, shown=shown, text=mails)
    return RUNS_FAILED if report.failure else 0


def _tree(words: Sequence[str], repository: str) -> tuple[str, tuple[str, ...]]:
    """The repository's folder, and the changes that hold for all kernels."""
    named = bool(words) and not words[0].startswith("+") and "=" not in words[0]
    if named and repository != ".":
        raise UserError(f"two trees: {words[0]} and -C {repository}", "name one of them")
    (spec, *more) = parse_kernel_words(words if named else [f"tree:{repository}", *words])
    if more or not isinstance(spec, TreeSpec):
        raise UserError(
            f"not one git tree: {' '.join(words)}",
            "for example kdelta bisect v6.12..v6.13 ~/linux +my.config",
        )
    return spec.path, tuple(str(change) for change in spec.changes)


def _write_logs(report: BisectReport, file: Path) -> None:
    if not report.found:
        log_to_stderr(f"no commit was found, so {file} is not written")
    for place, found in enumerate(report.found):
        path = file if not place else file.with_name(f"{file.name}.{place + 1}")
        write_atomic(path, report.logs[found.commit.name].encode())
        log_to_stderr(f"git bisect replay {path}: {found.commit.cited}")
