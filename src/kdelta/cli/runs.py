# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta runs`: what ran, at a glance. It imports little: it is what is asked for most often."""

import importlib
from typing import Annotated

from kdelta import __version__
from kdelta.cli.listing import runs_text
from kdelta.cli.output import emit
from kdelta.cli.plain_options import Json, limit_option
from kdelta.host.dirs import data_dir
from kdelta.store.store import Store


def runs(
    limit: Annotated[int, limit_option(min=1, help="The latest so many.")] = 20,
    json: Json = False,
) -> None:
    """List the runs, failed ones too.

    The latest comes first.
    """
    with Store.open(data_dir()) as store:
        found = store.runs(limit)
        regions = [] if json else [store.regions(run) for run in found]
    if json:
        model = importlib.import_module("kdelta.report.model")
        documents = importlib.import_module("kdelta.studies.documents")
        emit(documents.document_text(model.run_list(found), __version__))
    else:
        emit(runs_text(found, regions))
