# SPDX-License-Identifier: GPL-2.0-or-later
"""A measure that a test registers is in compare, gate, ablate, bisect, series and log, and in every
form, with no other file touched.
"""

import asyncio
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import merged_regions
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate
from kdelta.lab.lab import Lab
from kdelta.lab.request import LabRequest
from kdelta.measures.model import Judgement, Measure, RunPair, RunSide
from kdelta.measures.registry import MEASURES
from kdelta.report.measured import Effect
from kdelta.report.stored import Stored
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.study import run_ablate
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect
from kdelta.studies.compare.assemble import compare_reports
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.forms import FORMS
from kdelta.studies.gate.request import GateRequest
from kdelta.studies.gate.study import run_gate
from kdelta.studies.search.model import averaged
from kdelta.studies.series.study import run_series
from tests.kernels.trees import fake_tree
from tests.lab.fake_lab import CostsByName, compared, for_real, never, without_guests
from tests.studies.ablated import AblatedLab, config_of, on, plain
from tests.studies.log.histories import log, three
from tests.studies.planted import CORE, SLOWER, Planted, PlantedLab, exactly
from tests.studies.search_lab import without_programs
from tests.studies.series.patches import Queue, SeriesLab, usual


class Toys(Measure):
    """Half of a region's instructions."""

    name = "toys"
    unit = "toys"

    def __init__(self) -> None:
        self.machines: list[MachineOptions] = []

    def judge(self, lab: Lab, pair: RunPair) -> Judgement:
        """Return the half of what both kernels execute, of the regions that are wanted."""
        self.machines.append(lab.request.machine)
        base, other = (self.figures(lab, side) for side in (pair.base, pair.other))
        effects = []
        for name in (one for one in base if one in other):
            ends = [float(side[name].value) for side in (base, other)]
            change = ends[1] / ends[0] - 1
            word = Word.SLOWER if change > 0 else Word.FASTER if change < 0 else Word.SAME
            before, after = (Interval(end, end) for end in ends)
            effects.append(Effect(name, word, before, after, Interval(change, change)))
        return Judgement(self.found(effects))

    def figures(self, _lab: Lab, side: RunSide) -> dict[str, Estimate]:
        """Return the half of what the first run executes."""
        regions = merged_regions(side.counts[0])
        halves = {name: one.mean_own_insns() / 2 for name, one in regions.items()}
        return {name: Estimate(half, half, half, 2) for name, half in halves.items()}


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> Toys:
    found = Toys()
    monkeypatch.setitem(MEASURES, "toys", lambda _: found)
    return found


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> CostsByName:
    assert own_cache.is_dir()
    without_guests(monkeypatch)
    return CostsByName({"base": (never, 0), "slow": (for_real, 50)})


def in_every_form(kind: str, *reports: msgspec.Struct) -> dict[str, str]:
    stored = Stored(kind, "Which?", f"kdelta {kind}", 0.0, "0", reports)
    found = {name: form.render(stored) for name, form in FORMS.items()}
    for name, text in found.items():
        assert "toys" in text, name
    return found


def test_compare_judges_and_shows_it(lab: CostsByName, tmp_path: Path) -> None:
    (found,) = compared(lab, tmp_path, "base", "slow")
    (judged,) = found.judged
    assert {one.region: one.word for one in judged.found.effects} == {
        "getppid": Word.SAME,
        "chdir": Word.SLOWER,
        "signal-handler": Word.SLOWER,
    }
    with Store.open(tmp_path / "store") as store:
        reports = compare_reports([found], store)
    forms = in_every_form("compare", *reports)
    # Half of 781,758 in 100 iterations.
    assert "3908.79" in forms["html"]
    assert "signal-handler +0.26%" in " ".join(forms["text"].split())
    assert "toys: Of 3 operations: 2 slower, 1 same." in forms["markdown"]
    (whole,) = msgspec.json.decode(forms["json"])["machines"]
    (measured,) = whole["others"][0]["measured"]
    assert measured["measure"] == "toys"
    assert [one["region"] for one in measured["effects"]] == ["getppid", "chdir", "signal-handler"]


def test_it_is_given_what_the_path_found(
    lab: CostsByName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[RunPair] = []
    judge = Toys.judge

    def noted(self: Toys, lab: Lab, pair: RunPair) -> Judgement:
        given.append(pair)
        return judge(self, lab, pair)

    monkeypatch.setattr(Toys, "judge", noted)
    (found,) = compared(lab, tmp_path, "base", "slow")
    (pair,) = given
    assert pair.path == found.effects
    (path,) = pair.judged
    effects = {one.region: one for one in path.found.effects}
    assert (path.found.measure, effects["chdir"].word) == ("path", Word.SLOWER)
    change = effects["chdir"].change
    assert change
    assert change.low == pytest.approx(0.00533, abs=1e-5)


def test_gate_depends_on_it(lab: CostsByName, tmp_path: Path) -> None:
    request = CompareRequest(base="base", others=("slow",), lab=LabRequest(perturbations=3))
    with Store.open(tmp_path / "store") as store:
        answer = asyncio.run(
            run_gate(GateRequest(compare=request, exact_margin=Fraction(1)), lab.in_store(store))
        )
    assert answer.decision.exit == 1
    because = "chdir (toys) +0.533% to +0.533% toys"
    assert because in answer.decision.because


def test_log_has_its_steps(own_data: Path, own_cache: Path) -> None:
    assert own_cache.is_dir()
    with Store.open(own_data) as store:
        three(store)
        report = log(store)
    (track,) = (one for one in report.series[0].tracks if one.operation == "stat")
    steps = [one.measured["toys"].word if one.measured else None for one in track.points]
    assert steps == [None, Word.SAME, Word.SLOWER]
    in_every_form("log", report)


@pytest.mark.build
@pytest.mark.slow
def test_ablate_has_it_by_option_group(
    ablate_request: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch, toys: Toys
) -> None:
    without_programs(monkeypatch)
    machine = MachineOptions(memory_mib=700)
    asked = LabRequest(machine=machine)
    request = msgspec.structs.replace(ablate_request, one_by_one=True, lab=asked)
    report = asyncio.run(run_ablate(request, AblatedLab(store, plain)))
    assert set(toys.machines) == {machine}
    (whole,) = report.measured
    assert {one.region: one.word for one in whole.effects}["open"] is Word.FASTER
    (unit,) = (one for one in report.option_groups if one.name == "ZERO_PAGES")
    (found,) = unit.measured
    words = {one.region: one.word for one in found.effects}
    assert words == {"open": Word.SAME, "fault": Word.FASTER, "empty": Word.SAME}
    in_every_form("ablate", report)


@pytest.mark.build
@pytest.mark.slow
def test_bisect_has_it_by_commit(
    own_cache: Path, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_cache.is_dir()
    without_programs(monkeypatch)
    planted = Planted(tmp_path)
    good = planted.name("HEAD")
    planted.change("core: slower", CORE, *SLOWER)
    request = BisectRequest(repository=str(planted.folder), range=f"{good}..main")
    report = asyncio.run(run_bisect(request, PlantedLab(planted, store)))
    (commit,) = report.found
    (found,) = commit.measured
    words = {one.region: one.word for one in found.effects}
    assert words == {"open": Word.SLOWER, "fault": Word.SAME, "empty": Word.SAME}
    in_every_form("bisect", report)


@pytest.mark.build
@pytest.mark.slow
def test_series_has_it_by_patch(
    own_cache: Path, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_cache.is_dir()
    without_programs(monkeypatch)
    queue = Queue(fake_tree(tmp_path), tmp_path / "queue")
    report = asyncio.run(run_series(usual(queue), SeriesLab(store)))
    measured = {row.name: row.measured for row in report.rows if row.measured}
    assert list(measured) == ["0002-lock-one", "0004-pages-two", "0005-lock-three"]
    (whole,) = report.measured
    assert {one.region: one.word for one in whole.effects}["open"] is Word.SLOWER
    in_every_form("series", report)


@pytest.mark.build
@pytest.mark.slow
def test_ablate_finds_what_it_alone_sees(
    ablate_request: AblateRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A measure that is searched by: the path is the same with the option and without it."""

    def drivers(_: Toys, __: Lab, side: RunSide) -> dict[str, Estimate]:
        assert side.kernel
        return {"open": exactly(40 + 6 * on(config_of(side.kernel), "OLD_DRIVER"))}

    without_programs(monkeypatch)
    monkeypatch.setattr(Toys, "searched", True)
    monkeypatch.setattr(Toys, "figures", drivers)
    request = msgspec.structs.replace(ablate_request, rule_out=False)
    report = asyncio.run(run_ablate(request, AblatedLab(store, plain)))
    effects = {
        one.name: {name: effect.value for name, effect in one.effects.items() if effect.value}
        for one in report.option_groups
    }
    assert effects["OLD_DRIVER"] == {"open (toys)": -6}
    assert "open (toys)" not in effects["ZERO_PAGES"]
    (region,) = (one for one in report.regions if one.name == "open (toys)")
    assert (region.unit, region.before, region.after) == ("toys", exactly(46), exactly(40))
    assert region not in averaged(report.regions)
    assert "40 toys an iteration" in in_every_form("ablate", report)["html"]
