# SPDX-License-Identifier: GPL-2.0-or-later
"""A page in Chromium: nothing may leave it, and nothing may complain."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Dialog, Page, Request, ViewportSize, sync_playwright

TIMEOUT_MS = 20_000
PHONE = (360, 740)
SCREEN = (1280, 800)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The system's browser, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-background-networking"],
        )
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def opened(
    browser: Browser, file: Path, size: tuple[int, int] = SCREEN, **context: Any
) -> Iterator[Page]:
    """A page that is ready, with no network at all. When it closes: AssertionError if it asked for
    anything, if a script failed or the console got a line, or if it opened a dialog.
    """
    told: list[str] = []
    viewport = ViewportSize(width=size[0], height=size[1])
    made = browser.new_context(viewport=viewport, offline=True, **context)
    page = made.new_page()
    page.set_default_timeout(TIMEOUT_MS)

    def dismissed(dialog: Dialog) -> None:
        told.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def asked(request: Request) -> None:
        if request.url != file.as_uri():
            told.append(f"request: {request.url}")

    page.on("console", lambda line: told.append(f"console: {line.text}"))
    page.on("pageerror", lambda error: told.append(f"error: {error}"))
    page.on("dialog", dismissed)
    page.on("request", asked)
    page.goto(file.as_uri())
    page.wait_for_function("performance.getEntriesByName('kdelta-ready').length > 0")
    yield page
    made.close()
    assert told == []
