# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab that commands pass to studies: the user's store, with progress that fits stderr."""

import contextlib
from collections.abc import Iterator

from kdelta.cli.progress import shown_progress
from kdelta.lab.lab import Lab
from kdelta.store.store import Store


@contextlib.contextmanager
def shown_lab(store: Store) -> Iterator[Lab]:
    """Yield a lab with that store; when the body ends, its progress is gone from the terminal."""
    with shown_progress() as progress:
        yield Lab(store, progress)
