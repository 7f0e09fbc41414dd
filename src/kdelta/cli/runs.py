# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta runs`: what ran, at a glance. It imports little: it is what is asked for most often."""

from typing import Annotated

import msgspec

from kdelta import __version__
from kdelta.cli.listing import runs_text
from kdelta.cli.output import emit
from kdelta.cli.plain_options import Json
from kdelta.host.dirs import data_dir
from kdelta.spec.option import option
from kdelta.store.store import Store


class RunsOptions(msgspec.Struct, frozen=True):
    """How many, and in which form."""

    limit: Annotated[int, option("-n", "--limit", help="List the latest N.")] = 20
    json: Json = False


def runs(asked: RunsOptions) -> None:
    """List the runs, failed ones too.

    The latest comes first.
    """
    with Store.open(data_dir()) as store:
        found = store.runs(asked.limit)
        regions = [] if asked.json else [store.regions(run) for run in found]
    if asked.json:
        from kdelta.report.model import run_list  # noqa: PLC0415  (it imports much)
        from kdelta.studies.documents import document_text  # noqa: PLC0415

        emit(document_text(run_list(found), __version__))
    else:
        emit(runs_text(found, regions))
