# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a page takes until it can be used."""

import statistics
from pathlib import Path

import msgspec

from tests.report.html.browser import chromium, opened

_READY = "performance.getEntriesByName('kdelta-ready')[0].startTime"
_ZOOM = """() => new Promise((done) => {
  const start = performance.now();
  const frame = document.querySelector('.flame [data-node]:nth-of-type(5)');
  frame?.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


class Opened(msgspec.Struct, frozen=True):
    """Medians in seconds: from the start of navigation until all scripts have run, of the first
    time that the page is laid out and of a zoom of the flame graph; with the file's size in bytes.
    """

    size: int
    ready: float
    painted: float
    zoomed: float


def measured(file: Path, rounds: int = 5) -> Opened:
    """Opens a page so many times, each in a browser's profile of its own. AssertionError if it asks
    for anything or complains.
    """
    ready, painted, zoomed = [], [], []
    with chromium() as browser:
        for _ in range(rounds):
            with opened(browser, file) as page:
                ready.append(page.evaluate(_READY) / 1000)
                paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime || 0"
                painted.append(page.evaluate(paint) / 1000)
                zoomed.append(page.evaluate(_ZOOM) / 1000)
    return Opened(
        file.stat().st_size, *(statistics.median(times) for times in (ready, painted, zoomed))
    )
