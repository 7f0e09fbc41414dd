# SPDX-License-Identifier: GPL-2.0-or-later
"""Ctrl-C where a coroutine works without awaiting."""

import asyncio
import contextlib
import ctypes
import logging
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import ParamSpec, TypeVar

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")


def run_async(work: Coroutine[object, object, Result]) -> Result:
    """Run it by asyncio.run(). That one's task keeps the result, and is spelt out whole, for a
    message that is not visible, whenever a handler of signals is looked up: of a report, for 0.3 s.
    """
    found: list[Result] = []

    async def keep() -> None:
        # What asyncio itself has to say is of tasks, futures and "unknown child processes" (which
        # it reaped itself when it closed them), which no user knows.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        found.append(await work)

    asyncio.run(keep())
    return found[0]


async def in_thread(
    work: Callable[Parameters, Result], *args: Parameters.args, **named: Parameters.kwargs
) -> Result:
    """Return what a function returns that runs in another thread. Ctrl-C ends it there, too:
    asyncio.to_thread() would leave it running, and the program would wait for its end.
    """
    lock = threading.Lock()
    running: list[int] = []

    def body() -> Result:
        with lock:
            running.append(threading.get_ident())
        try:
            return work(*args, **named)
        finally:
            with lock:
                running.clear()

    try:
        return await asyncio.to_thread(body)
    except asyncio.CancelledError:
        with lock:
            for thread in running:
                _raise_in(thread)
        raise


def _raise_in(thread: int) -> None:
    error = ctypes.py_object(KeyboardInterrupt)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), error)


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
