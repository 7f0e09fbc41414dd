# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that end with kdelta, even where it is killed and cannot end them."""

import ctypes
import os

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def tie_to(parent: int, number: int) -> None:
    """Get that signal when the parent ends: in the child, before exec."""
    _libc.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)
