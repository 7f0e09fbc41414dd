# SPDX-License-Identifier: GPL-2.0-or-later
"""An ablation of the fake tree: real configs, builds, objects and ruling out; planted effects."""

import asyncio
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.host.dirs import data_dir
from kdelta.infer.chance import ENOUGH
from kdelta.infer.doubt import region_runs
from kdelta.infer.estimate import Estimate
from kdelta.infer.means import Adds
from kdelta.infer.paths import RegionPath, region_paths
from kdelta.kernels import Kernel, NoKernel
from kdelta.kernels.built import DIGEST, built_kernels
from kdelta.kernels.kconfig import Config, parse_config
from kdelta.report.ablation import ablation_text
from kdelta.report.ablation_model import AblatedUnit, AblationReport, Fate
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.ablate import AblateRequest, run_ablate
from kdelta.studies.ablate.measure import Bench, Measured, Region
from kdelta.studies.requests import Silent
from tests.infer.test_doubt import TIMER, steady
from tests.kernels.trees import fake_tree

SLOW = """CONFIG_DEBUG_KERNEL=y
CONFIG_DEBUG_LIST=y
CONFIG_DEBUG_LOCK=y
CONFIG_ZERO_PAGES=y
CONFIG_OLD_DRIVER=y
CONFIG_OPTIMIZE_FOR_SIZE=y
"""
FEW = 3
FAST = "# CONFIG_DEBUG_KERNEL is not set\nCONFIG_OPTIMIZE_FOR_SPEED=y\n"

EXECUTED = {"start", "start_kernel", "lock", "clear_pages", "list_valid"}

Truth = Callable[[Config], dict[str, int] | None]
"""What a kernel of that config executes, by region; None if it does not boot."""


def on(config: Config, name: str) -> bool:
    return config.get(f"CONFIG_{name}") == "y"


def plain(config: Config) -> dict[str, int] | None:
    size = 5 * on(config, "OPTIMIZE_FOR_SIZE")
    return {
        "open": 100 + 30 * on(config, "DEBUG_LIST") + 7 * on(config, "DEBUG_LOCK") + size,
        "fault": 200 + 100 * on(config, "ZERO_PAGES") + size,
        "empty": 4,
    }


class Lab:
    """Stands for guests: counts the runs, and tells what the truth is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, truth: Truth) -> None:
        self.truth = truth
        self.measured = 0
        lab = self

        async def measure(
            _: Bench, label: str, kernel: Kernel | NoKernel, **options: Any
        ) -> Measured:
            return lab.measure(label, kernel, options.get("runs") or 0)

        monkeypatch.setattr(Bench, "measure", measure)
        monkeypatch.setattr(Bench, "executed", lambda *_: frozenset(EXECUTED))

    def measure(self, label: str, kernel: Kernel | NoKernel, runs: int) -> Measured:
        if isinstance(kernel, NoKernel):
            return Measured(label, kernel, (), {}, kernel.text, kernel.status)
        self.measured += 1
        found = self.truth(parse_config(Path(kernel.config or "").read_text()))
        if found is None:
            return Measured(label, kernel, (), {}, "boot-failed: panic", RunStatus.BOOT_FAILED)
        nothing = exactly(0, runs)
        return Measured(
            label,
            kernel,
            (),
            {
                name: Region("syscalls", RegionPath(exactly(n, runs), exactly(n, runs), nothing))
                for name, n in found.items()
            },
        )


def exactly(value: int, runs: int) -> Estimate:
    return Estimate(Fraction(value), Fraction(value), Fraction(value), runs or 3)


@pytest.fixture
def request_(own_cache: Path, tmp_path: Path) -> AblateRequest:
    assert own_cache.is_dir()
    (tmp_path / "slow_defconfig").write_text(SLOW)
    (tmp_path / "fast_defconfig").write_text(FAST)
    return AblateRequest(
        tree=f"tree:{fake_tree(tmp_path)}",
        before=str(tmp_path / "slow_defconfig"),
        after=str(tmp_path / "fast_defconfig"),
    )


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(data_dir()) as opened:
        yield opened


def ablated(request: AblateRequest, store: Store) -> AblationReport:
    return asyncio.run(run_ablate(request, store, Silent()))


def effects(report: AblationReport) -> dict[str, dict[str, int]]:
    """By unit, what is not nought."""
    return {
        unit.name: {name: int(e.value) for name, e in unit.effects.items() if e.value}
        for unit in report.units
        if unit.fate in (Fate.MEASURED, Fate.CLEARED)
    }


def unit(report: AblationReport, name: str) -> AblatedUnit:
    return next(one for one in report.units if one.name == name)


def test_what_costs_what(
    request_: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lab(monkeypatch, plain)
    report = ablated(request_, store)
    size = next(n for n in effects(report) if n.startswith("OPTIMIZE"))
    found = effects(report)
    assert found.pop("DEBUG_KERNEL", {}) == {}
    assert found == {
        "DEBUG_LIST": {"open": -30},
        "DEBUG_LOCK": {"open": -7},
        "ZERO_PAGES": {"fault": -100},
        size: {"open": -5, "fault": -5},
    }
    assert unit(report, "OLD_DRIVER").fate is Fate.DEAD
    assert unit(report, "OLD_DRIVER").objects == 1
    assert report.proof is not None
    assert report.proof.held is True
    assert len(report.builds) <= len(report.units) + 3
    assert all(
        region.adds is Adds.ADDS_UP and not region.remainder.value for region in report.regions
    )
    text = ablation_text(report)
    assert "OLD_DRIVER (1)" in text
    assert "ZERO_PAGES" in text
    assert max(len(line) for line in text.splitlines() if request_.tree not in line) <= 80


def test_asking_again_builds_nothing(
    request_: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lab(monkeypatch, plain)
    first = ablated(request_, store)
    again = ablated(request_, store)
    assert effects(again) == effects(first)
    assert [build.identity for build in again.builds] == [one.identity for one in first.builds]


def test_a_digest_that_another_version_made_is_made_again(
    request_: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lab(monkeypatch, plain)
    first = ablated(request_, store)
    path = next(
        one.path for one in built_kernels() if one.identity == first.ends[0].identity
    ).joinpath(DIGEST)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"kdelta digest ", b"kdelta digest 0", 1))
    again = ablated(request_, store)
    assert path.read_bytes() == whole
    assert effects(again) == effects(first)


def test_a_pruning_that_was_wrong_is_said_and_searched(
    request_: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def truth(config: Config) -> dict[str, int] | None:
        found = plain(config)
        assert found is not None
        return {**found, "empty": 4 + 11 * on(config, "OLD_DRIVER")}

    Lab(monkeypatch, truth)
    report = ablated(request_, store)
    assert report.proof is not None
    assert report.proof.held is False
    assert "empty" in report.proof.differing
    assert effects(report)["OLD_DRIVER"] == {"empty": -11}
    assert effects(report)["ZERO_PAGES"] == {"fault": -100}


def test_one_by_one_gives_the_same(
    request_: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lab(monkeypatch, plain)
    usual = ablated(request_, store)
    slow = msgspec.structs.replace(request_, one_by_one=True, rule_out=False)
    thorough = ablated(slow, store)
    some = {name: found for name, found in effects(thorough).items() if found}
    assert some == {name: found for name, found in effects(usual).items() if found}
    assert all(one.fate is not Fate.DEAD for one in thorough.units)


def test_a_kernel_that_does_not_boot_does_not_end_the_study(
    request_: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def truth(config: Config) -> dict[str, int] | None:
        alone = not on(config, "ZERO_PAGES") and on(config, "DEBUG_LIST")
        return None if alone else plain(config)

    Lab(monkeypatch, truth)
    report = ablated(request_, store)
    assert effects(report)["DEBUG_LIST"] == {"open": -30}
    assert effects(report)["ZERO_PAGES"] == {"fault": -100}, "seen where DEBUG_LIST is off as well"
    assert "boot-failed: panic" in ablation_text(report)


def test_ends_of_which_one_is_refused(
    request_: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lab(monkeypatch, lambda _: None)
    report = ablated(request_, store)
    assert "boot-failed: panic" in report.failure
    assert "nothing to compare" in ablation_text(report)


def test_a_config_that_is_none(request_: AblateRequest, store: Store, tmp_path: Path) -> None:
    for name, words in (("absent", "cannot be read"), ("empty", "has no options")):
        path = tmp_path / name
        if name == "empty":
            path.write_text("nothing\n")
        with pytest.raises(UserError, match=words):
            ablated(msgspec.structs.replace(request_, after=str(path)), store)


class Timed(Lab):
    """The same with the runs of `open`: with ZERO_PAGES a timer ends in the first three of each
    kernel, as chance has it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, truth: Truth) -> None:
        super().__init__(monkeypatch, truth)
        self.asked: list[tuple[bool, int]] = []

    def measure(self, label: str, kernel: Kernel | NoKernel, runs: int) -> Measured:
        found = super().measure(label, kernel, runs)
        if isinstance(kernel, NoKernel) or found.failure:
            return found
        config = parse_config(Path(kernel.config or "").read_text())
        timed, count = on(config, "ZERO_PAGES"), runs or FEW
        self.asked.append((timed, count))
        insns = (self.truth(config) or {})["open"]
        first = steady(insns, 953, TIMER) if timed else steady(insns)
        every = [first] * FEW + [steady(insns)] * (count - FEW)
        path = region_paths(every)["open"]
        return msgspec.structs.replace(
            found,
            regions={**found.regions, "open": Region("syscalls", path)},
            runs=region_runs(every),
        )


def test_what_chance_may_have_made_takes_more_runs_and_no_unit(
    request_: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Timed(monkeypatch, plain)
    report = ablated(request_, store)
    assert (True, ENOUGH) in lab.asked, "a kernel that differs by a timer is run more often"
    pages, listed = (unit(report, name).effects["open"] for name in ("ZERO_PAGES", "DEBUG_LIST"))
    assert pages.low <= 0 <= pages.high
    assert listed.low <= -30 <= listed.high < 0
