# SPDX-License-Identifier: GPL-2.0-or-later
"""Ctrl-C where a coroutine works without awaiting."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Coroutine, Iterator
from typing import TypeVar

Result = TypeVar("Result")


def run_async(work: Coroutine[object, object, Result]) -> Result:
    """asyncio.run() of it. That one's task keeps the result, and is spelt out whole, for a message
    that is not visible, whenever a handler of signals is looked up: of a report, for 0.3 s.
    """
    found: list[Result] = []

    async def keep() -> None:
        # What asyncio itself has to say is of tasks and futures, which no user knows.
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        found.append(await work)

    asyncio.run(keep())
    return found[0]


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Lets Ctrl-C end the body at once, and the programs that it runs.

    asyncio would only note it until the next await: after a download of minutes, perhaps. What it
    noted between two such bodies ends the second one before it begins.
    """
    with contextlib.suppress(RuntimeError):  # there is no event loop in this thread
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise KeyboardInterrupt
    before = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread()
    if not ours or not callable(before):  # ignored, as in a shell's background job
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
