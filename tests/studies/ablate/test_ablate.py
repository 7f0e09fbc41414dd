# SPDX-License-Identifier: GPL-2.0-or-later
"""An ablation of the fake tree: real configs, builds, objects and ruling out; planted effects."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.chance import ENOUGH
from kdelta.infer.effects.estimate import MEAN, Adds
from kdelta.kernels.config.kconfig import Config
from kdelta.kernels.kbuild.built import DIGEST, built_kernels
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.ablate.model import AblatedGroup, AblationReport, GroupOutcome
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.study import run_ablate
from tests.infer.steady_runs import TIMER, steady
from tests.report.shown import shown
from tests.studies.ablated import AblatedLab, config_of, on, plain
from tests.synthetic import run

pytestmark = pytest.mark.build

FEW = 3


def ablated(request: AblateRequest, lab: Lab) -> AblationReport:
    return asyncio.run(run_ablate(request, lab))


def effects(report: AblationReport) -> dict[str, dict[str, int]]:
    """By unit, what is not zero."""
    return {
        unit.name: {
            name: int(e.value) for name, e in unit.effects.items() if e.value and name != MEAN
        }
        for unit in report.option_groups
        if unit.outcome in (GroupOutcome.MEASURED, GroupOutcome.CLEARED)
    }


def unit(report: AblationReport, name: str) -> AblatedGroup:
    return next(one for one in report.option_groups if one.name == name)


def test_what_costs_what(ablate_request: AblateRequest, store: Store) -> None:
    lab = AblatedLab(store, plain)
    report = ablated(ablate_request, lab)
    size = next(n for n in effects(report) if n.startswith("OPTIMIZE"))
    found = effects(report)
    assert found.pop("DEBUG_KERNEL", {}) == {}
    assert found == {
        "DEBUG_LIST": {"open": -30},
        "DEBUG_LOCK": {"open": -7},
        "ZERO_PAGES": {"fault": -100},
        size: {"open": -5, "fault": -5},
    }
    assert unit(report, "OLD_DRIVER").outcome is GroupOutcome.DEAD
    assert unit(report, "OLD_DRIVER").objects == 1
    assert report.proof is not None
    assert report.proof.held is True
    assert len(report.builds) <= len(report.option_groups) + 3
    assert all(
        region.adds is Adds.ADDS_UP and not region.remainder.value for region in report.regions
    )
    text = shown("ablate", report)
    assert "OLD_DRIVER" in text
    assert "ZERO_PAGES" in text
    assert max(len(line) for line in text.splitlines() if ablate_request.tree not in line) <= 80


@pytest.mark.slow
def test_asking_again_builds_nothing(ablate_request: AblateRequest, store: Store) -> None:
    lab = AblatedLab(store, plain)
    first = ablated(ablate_request, lab)
    again = ablated(ablate_request, lab)
    assert effects(again) == effects(first)
    assert [build.identity for build in again.builds] == [one.identity for one in first.builds]


@pytest.mark.slow
def test_a_digest_that_another_version_made_is_made_again(
    ablate_request: AblateRequest, store: Store
) -> None:
    lab = AblatedLab(store, plain)
    first = ablated(ablate_request, lab)
    path = next(
        one.path for one in built_kernels() if one.identity == first.ends[0].identity
    ).joinpath(DIGEST)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"kdelta digest ", b"kdelta digest 0", 1))
    again = ablated(ablate_request, lab)
    assert path.read_bytes() == whole
    assert effects(again) == effects(first)


@pytest.mark.slow
def test_a_pruning_that_was_wrong_is_reported_and_searched(
    ablate_request: AblateRequest, store: Store
) -> None:
    def truth(config: Config) -> dict[str, int] | None:
        found = plain(config)
        assert found is not None
        return {**found, "empty": 4 + 11 * on(config, "OLD_DRIVER")}

    lab = AblatedLab(store, truth)
    report = ablated(ablate_request, lab)
    assert report.proof is not None
    assert report.proof.held is False
    assert "empty" in report.proof.differing
    assert effects(report)["OLD_DRIVER"] == {"empty": -11}
    assert effects(report)["ZERO_PAGES"] == {"fault": -100}


@pytest.mark.slow
def test_one_by_one_gives_the_same(ablate_request: AblateRequest, store: Store) -> None:
    lab = AblatedLab(store, plain)
    usual = ablated(ablate_request, lab)
    slow = msgspec.structs.replace(ablate_request, one_by_one=True, rule_out=False)
    thorough = ablated(slow, lab)
    some = {name: found for name, found in effects(thorough).items() if found}
    assert some == {name: found for name, found in effects(usual).items() if found}
    assert all(one.outcome is not GroupOutcome.DEAD for one in thorough.option_groups)


@pytest.mark.slow
def test_a_kernel_that_does_not_boot_does_not_end_the_study(
    ablate_request: AblateRequest, store: Store
) -> None:
    def truth(config: Config) -> dict[str, int] | None:
        alone = not on(config, "ZERO_PAGES") and on(config, "DEBUG_LIST")
        return None if alone else plain(config)

    lab = AblatedLab(store, truth)
    report = ablated(ablate_request, lab)
    assert effects(report)["DEBUG_LIST"] == {"open": -30}
    assert effects(report)["ZERO_PAGES"] == {"fault": -100}, "seen where DEBUG_LIST is off as well"
    assert "boot-failed: panic" in shown("ablate", report)


@pytest.mark.slow
def test_ends_of_which_one_is_refused(ablate_request: AblateRequest, store: Store) -> None:
    lab = AblatedLab(store, lambda _: None)
    report = ablated(ablate_request, lab)
    assert "boot-failed: panic" in report.failure
    assert "nothing to compare" in shown("ablate", report)


def test_a_config_that_is_none(ablate_request: AblateRequest, store: Store, tmp_path: Path) -> None:
    for name, words in (("absent", "there is no file"), ("empty", "is no config")):
        path = tmp_path / name
        if name == "empty":
            path.write_text("nothing\n")
        with pytest.raises(UserError, match=words):
            ablated(
                msgspec.structs.replace(ablate_request, after=str(path)), AblatedLab(store, plain)
            )


class Timed(AblatedLab):
    """The same with a timer that ends in the first three runs of kernels with ZERO_PAGES, as chance
    has it, while `open` is measured.
    """

    def counts(self, kernel: Kernel, index: int) -> RunCounts | None:
        """Return steady counts of `open`."""
        found = super().counts(kernel, index)
        config = config_of(kernel)
        insns = (self.truth(config) or {})["open"]
        timed = index < FEW and on(config, "ZERO_PAGES")
        opened = steady(insns, 953, TIMER) if timed else steady(insns)
        (alone,) = opened.regions
        alone = msgspec.structs.replace(alone, clock_ticks=0)
        return found and run(alone, *found.regions[1:])


@pytest.mark.slow
def test_what_chance_may_have_made_takes_more_runs_and_no_unit(
    ablate_request: AblateRequest, store: Store
) -> None:
    lab = Timed(store, plain)
    few = msgspec.structs.replace(ablate_request, lab=LabRequest(perturbations=FEW))
    report = ablated(few, lab)
    assert any(
        len(one.indexes) == ENOUGH and on(config_of(one.kernel), "ZERO_PAGES") for one in lab.made
    ), "a kernel that differs by a timer is run more often"
    pages, listed = (unit(report, name).effects["open"] for name in ("ZERO_PAGES", "DEBUG_LIST"))
    assert pages.low <= 0 <= pages.high
    assert listed.low <= -30 <= listed.high < 0
