# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that all runs on."""

import contextlib
import os
from collections.abc import Iterator

from kdelta.host.lock import locked_if_free


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def own_core() -> Iterator[int | None]:
    """Give a core that this process may use, and that nothing else has by this, during the body;
    None where all are taken.
    """
    mine = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(mine)  # two users, who have locks of their own, seldom meet
    with contextlib.ExitStack() as stack:
        in_turn = (*mine[first:], *mine[:first])
        yield next(
            (one for one in in_turn if stack.enter_context(locked_if_free(f"core {one}"))), None
        )
