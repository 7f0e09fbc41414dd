# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisection that is killed at any moment goes on, and repeats no build that had finished."""

import asyncio
import importlib
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.host.dirs import data_dir
from kdelta.lab.lab import Lab
from kdelta.store.store import Store
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect
from tests.caches import use_cache
from tests.kernels.git_trees import state
from tests.studies.planted import BROKEN, CORE, FASTER, SLOWER, Planted, PlantedLab
from tests.studies.search_lab import without_programs

pytestmark = pytest.mark.build

KILLS = 25


class Log:
    """What was begun and finished, in a file that outlives a kill."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def log(self, *words: str) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, f"{' '.join(words)}\n".encode())
        os.close(descriptor)

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.path.read_text().splitlines()]


def watched(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    """Has each build say when it begins, and when a kernel has come of it."""
    module = importlib.import_module("kdelta.kernels.kbuild.build")
    build, kernel = module._build, Lab.kernel

    def _build(request: Any, config: Any, *rest: Any) -> Any:
        key = request.key(config.text)
        log.log("begin", key)
        made = build(request, config, *rest)
        if not hasattr(made, "status"):
            log.log("end", key)
        return made

    def asked(self: Lab, spec: str) -> Any:
        log.log("asked", spec.partition("@")[2].split()[0])
        return kernel(self, spec)

    monkeypatch.setattr(module, "_build", _build)
    monkeypatch.setattr(Lab, "kernel", asked)


def bisected(request: BisectRequest, lab: PlantedLab) -> BisectReport:
    with Store.open(data_dir()) as store:
        return asyncio.run(run_bisect(request, lab.in_store(store)))


def attempt(request: BisectRequest, lab: PlantedLab, seconds: float) -> bool:
    """Runs it in a process that is killed, with all that it started, after that time; whether it
    ended before.
    """
    child = os.fork()
    if not child:
        os.setsid()
        try:
            bisected(request, lab)
            os._exit(0)
        finally:
            os._exit(1)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0
            return True
        time.sleep(0.002)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def failures() -> set[str]:
    """The commits of which is on record that they failed."""
    found: set[str] = set()
    for path in data_dir("bisect").glob("*.json"):
        kept = msgspec.json.decode(path.read_bytes())
        found.update(one["commit"] for one in kept["failures"])
    return found


def planted_history(folder: Path) -> tuple[Planted, str]:
    planted = Planted(folder)
    good = planted.name("HEAD")
    planted.placement(1)
    planted.change("core: slower", CORE, *SLOWER)
    planted.change("core: breaks the build", CORE, *BROKEN)
    planted.change("core: fixes the build", CORE, BROKEN[1], BROKEN[0])
    planted.change("core: faster", CORE, *FASTER)
    return planted, good


def fresh(monkeypatch: pytest.MonkeyPatch, folder: Path, number: int) -> None:
    """Another cache and another store, both empty."""
    cache, data = folder / f"cache-{number}", folder / f"data-{number}"
    cache.mkdir()
    data.mkdir()
    use_cache(cache, monkeypatch)
    monkeypatch.setenv("KDELTA_DATA_DIR", str(data))


def effects(report: BisectReport) -> list[tuple[str, dict[str, int]]]:
    return [
        (one.commit.subject, {name: int(e.value) for name, e in one.effects.items()})
        for one in report.found
    ]


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted, good = planted_history(tmp_path)
    before = state(planted.folder)
    without_programs(monkeypatch)
    lab = PlantedLab(planted)
    request = BisectRequest(repository=str(planted.folder), range=f"{good}..main", rule_out=False)
    fresh(monkeypatch, tmp_path, 0)
    started = time.monotonic()
    expected = bisected(request, lab)
    whole = time.monotonic() - started
    assert {subject for subject, _ in effects(expected)} == {"core: slower", "core: faster"}
    draw, kills, number = random.Random(1), 0, 0
    while kills < KILLS:
        number += 1
        fresh(monkeypatch, tmp_path, number)
        log = Log(tmp_path / f"log-{number}")
        with monkeypatch.context() as patched:
            watched(patched, log)
            known: list[tuple[int, set[str]]] = []
            # Longer each time, since a busy host may have become slower.
            while not attempt(request, lab, draw.uniform(0, whole * (0.3 + 0.1 * len(known)))):
                kills += 1
                known.append((len(log.lines()), failures()))
            assert effects(bisected(request, lab)) == effects(expected)
        lines = log.lines()
        for at, words in enumerate(lines):
            if words[0] == "begin":
                assert ["end", words[1]] not in lines[:at], "a finished build was begun again"
            failed = [commits for count, commits in known if count <= at]
            if words[0] == "asked" and failed:
                assert words[1] not in failed[-1], "what had failed was tried again"
    assert state(planted.folder) == before
