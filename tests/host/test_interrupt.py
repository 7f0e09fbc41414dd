# SPDX-License-Identifier: GPL-2.0-or-later
"""Ctrl-C in coroutines that work without awaiting."""

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from kdelta.host.interrupt import in_thread, interruptible, run_async


@pytest.fixture(autouse=True)
def _ctrl_c_as_usual() -> Iterator[None]:
    """The parent of the tests may have it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(work: Coroutine[Any, Any, None]) -> bool:
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(work)
        return False
    return True


def test_ctrl_c_ends_a_body_at_once() -> None:
    done = []

    async def work() -> None:
        with interruptible():
            done.append("begun")
            signal.raise_signal(signal.SIGINT)
            done.append("not reached")

    assert interrupted(work())
    assert done == ["begun"]


def test_ctrl_c_between_two_bodies_ends_the_second_before_it_begins() -> None:
    done = []

    async def work() -> None:
        with interruptible():
            done.append("first")
        signal.raise_signal(signal.SIGINT)
        done.append("between")
        with interruptible():
            done.append("not reached")

    assert interrupted(work())
    assert done == ["first", "between"]


def test_a_body_within_another_changes_nothing_for_it() -> None:
    done = []

    async def work() -> None:
        with interruptible():
            with interruptible():
                done.append("inner")
            signal.raise_signal(signal.SIGINT)
            done.append("not reached")

    assert interrupted(work())
    assert done == ["inner"]


def test_after_the_body_ctrl_c_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_a_thread_has_no_signals() -> None:
    async def work() -> None:
        def body() -> bool:
            with interruptible():
                return True

        assert await asyncio.to_thread(body)

    assert not interrupted(work())


def test_ctrl_c_ends_what_works_in_another_thread() -> None:
    begun, ended, done = threading.Event(), threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while not done.is_set():
                time.sleep(0.001)
        finally:
            ended.set()

    async def work() -> None:
        busy = asyncio.create_task(in_thread(endless))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        signal.raise_signal(signal.SIGINT)
        await busy

    # If it did not end there, asyncio would wait for it without end.
    rescue = threading.Timer(20, done.set)
    rescue.start()
    assert interrupted(work())
    assert ended.is_set()
    assert not done.is_set()
    rescue.cancel()


def test_what_ended_in_another_thread_gives_its_result_or_its_error() -> None:
    assert asyncio.run(in_thread(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(divmod, 7, 0))


def test_nothing_of_asyncio_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """As it warns of a child that it reaped itself when it closed its pipes."""

    async def work() -> None:
        process = await asyncio.create_subprocess_exec("true")
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, 0)
        await process.wait()
        logging.getLogger("asyncio").warning("Unknown child process")

    run_async(work())
    assert caplog.records == []
