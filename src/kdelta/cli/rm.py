# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta rm`: what is stored and no longer wanted."""

from typing import Annotated

from kdelta.cli.output import emit
from kdelta.host.dirs import data_dir
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument
from kdelta.store.model import Study
from kdelta.store.store import LAST, Store


def rm(
    ids: Annotated[
        list[str],
        Argument(metavar="ID...", help="Studies' or runs' ids, or beginnings.", values="STUDY|RUN"),
    ],
) -> None:
    """Remove studies and runs from the store.

    Asks nothing, and prints what was removed and how much space that freed. What other runs and
    studies have stays; a study's runs stay, too.
    """
    if LAST in ids:
        raise UserError(
            f"cannot remove {LAST}: that word is another study or run each time",
            "name an id: kdelta report --list lists the studies, kdelta runs the runs",
        )
    with Store.open(data_dir()) as store:
        found = {one.id: one for one in map(store.study_or_run, ids)}
        for one in found.values():
            freed = store.remove(one)
            what = f"study {one.id}, {one.kind}" if isinstance(one, Study) else f"run {one.id}"
            emit(f"removed {what} of {one.started_text} UTC: {freed / 1000:.0f} kB freed\n")
