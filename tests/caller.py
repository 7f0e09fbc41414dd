# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes tests see the same whatever their caller is, and in any order that is asked for."""

import os
import random
import resource
import signal
import sys
import time
from pathlib import Path

import pytest

_KEPT = ("KDELTA_CACHE_DIR", "KDELTA_TEST_", "KDELTA_UPDATE_GOLDEN")
_FORGOTTEN = (
    "KDELTA_", "GIT_", "LC_", "LANGUAGE", "COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR",
    "CLICOLOR", "PAGER", "LESS", "DEBUGINFOD_URLS", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED",
)  # fmt: skip
"""How variables begin that a user may have set for kdelta, git, a terminal or Python."""


def forget_caller() -> None:
    """Set to what a terminal's job has, for this process and all that it starts, what a caller
    hands on: dispositions of signals, the umask, the locale, the time zone, and variables.

    A shell's background job and `nohup` hand signals on as ignored, and what tests start and
    interrupt would ignore them, too.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    for name in list(os.environ):
        if name.startswith(_FORGOTTEN) and not name.startswith(_KEPT):
            del os.environ[name]
    # A caller's python3 may be a script that looks for one, ten times as slow.
    own = Path(sys.executable).parent
    os.environ |= {"LANG": "C.UTF-8", "TZ": "UTC", "PATH": f"{own}{os.pathsep}{os.environ['PATH']}"}
    time.tzset()


_OPEN_FILES = 2048
"""More than any test has open."""


def allow_open_files() -> str:
    """Let this process, and all that it starts, have as many files open as tests need; return what
    is wrong where that is not allowed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _OPEN_FILES:
        return f"no more than {hard} open files are allowed here (ulimit -Hn): {_OPEN_FILES} wanted"
    if soft != resource.RLIM_INFINITY and soft < _OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, hard))
    return ""


def ordered(items: list[pytest.Item], order: str) -> None:
    """Put the tests in the order that `--order` names: reversed, or drawn by a seed."""
    if order == "reverse":
        items.reverse()
    elif order:
        random.Random(order).shuffle(items)
