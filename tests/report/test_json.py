# SPDX-License-Identifier: GPL-2.0-or-later
"""The JSON forms: complete, adding up, and as their schemas say."""

import math

import msgspec
import pytest

from kdelta.infer.cycles.ensembles import Interval
from kdelta.report.model import run_list
from kdelta.spec.run import RunStatus
from kdelta.studies.compare.model import comparison
from kdelta.studies.documents import document_text
from tests.report.decoded import decoded
from tests.report.example import failed_report, report, run_report, stored
from tests.report.example_cycles import LAYOUTS, cycles_of, with_cycles, with_effects
from tests.report.test_text import compare_text


def test_a_comparison() -> None:
    document = decoded(document_text(comparison([report()]), "0.1.0"))
    assert document["schema"] == "kdelta.compare/4"
    assert document["kdelta"] == "0.1.0"
    (other,) = document["machines"][0]["others"]
    statuses = [one["run"]["status"] for one in other["side"]["runs"]]
    assert statuses == ["ok"] * 3 + ["workload-failed"]
    assert other["effects"]["warnings"] == ["other: the guest never became quiet (3 runs)"]
    operations = {one["name"]: one for one in other["effects"]["operations"]}
    getppid = operations["getppid"]
    verdict = {"word": "faster", "within": None, "reason": "", "runs_needed": 0}
    assert getppid["verdict"] == verdict
    effect = {"value": -1, "low": -1, "high": -1, "n": 3, "paired": False}
    assert getppid["costs"]["insns"]["effect"] == effect
    assert operations["uname"]["verdict"] == {**verdict, "word": "same", "within": 0}
    assert operations["futex-wake"]["costs"] is None
    assert operations["futex-wake"]["verdict"]["word"] == "not comparable"
    assert operations["open-close"]["costs"]["specials"]["lock"]["effect"]["value"] == -2


def test_model_cycles() -> None:
    document = decoded(document_text(comparison([with_cycles(), with_cycles("zen2")]), "0.1.0"))
    assert [one["cpu"]["name"] for one in document["machines"]] == ["zen3", "zen2"]
    assert document["machines"][0]["cpu"]["without_measured_cost"] == ["l1i", "itlb", "l2"]
    other = document["machines"][0]["others"][0]
    (cycles,) = other["measured"]
    effects = {one["region"]: one["detail"] for one in cycles["effects"] if "detail" in one}
    uname = effects["uname"]
    assert uname["verdict"]["word"] == "placement only"
    assert uname["layouts"] == [LAYOUTS, LAYOUTS]
    assert uname["misses"]["l1i"]["base"]["as_linked"] == 6.8
    assert uname["misses"]["l1i"]["base"]["percentile"] > 50
    assert uname["misses"]["itlb"]["effect"] == {"value": 0, "low": 0, "high": 0}
    for figure in (*uname["misses"].values(), uname["hidden"], uname["exposed"]):
        difference = figure["other"]["mean"] - figure["base"]["mean"]
        assert figure["effect"]["value"] == pytest.approx(difference)
    assert ["open-close" in one["regions"] for one in other["mismatches"]] == [True, True, False]
    assert other["mismatches"][1]["kernels"] == ["other"]
    reason = "its trace would need 1.3 GiB: --trace-limit 1.3"
    assert cycles["notes"][0] == f"read-zero-64k: not replayed: {reason}"
    cut = cycles["effects"][-1]
    assert (cut["region"], cut["word"], cut["reason"]) == ("read-zero-64k", "unresolved", reason)
    assert "read-zero-64k" not in effects
    assert effects["getppid"]["verdict"] == {
        "word": "same",
        "within": 0.01,
        "layouts": None,
        "reason": "",
    }


def test_what_nothing_knows_is_null() -> None:
    plain = with_cycles()
    effect = next(iter(cycles_of(plain).placements.values()))
    endless = msgspec.structs.replace(effect, relative=Interval(-0.5, math.inf))
    changed = with_effects(plain, (endless,))
    found, *_ = decoded(document_text(comparison([changed]), "0.1.0"))["machines"][0]["others"][0][
        "measured"
    ][0]["effects"]
    assert found["change"] == found["detail"]["relative"] == {"low": -0.5, "high": None}
    assert "-50.0% to any" in " ".join(compare_text(changed).split())


def test_without_a_cpu_there_are_no_model_cycles() -> None:
    (machine,) = decoded(document_text(comparison([report()]), "0.1.0"))["machines"]
    assert machine["cpu"] is None
    assert machine["others"][0]["measured"] == []


def test_functions_add_up_in_json_too() -> None:
    document = decoded(document_text(comparison([report()]), "0.1.0"))
    for operation in document["machines"][0]["others"][0]["effects"]["operations"]:
        if operation["costs"] is None:
            continue
        for side in ("base", "other"):
            total = sum(one["cost"][side]["value"] for one in operation["functions"])
            assert total == pytest.approx(operation["costs"]["insns"][side]["value"], rel=1e-12)


def test_a_run() -> None:
    document = decoded(document_text(run_report(), "0.1.0"))
    assert document["run"]["run"]["status"] == "ok"
    regions = {region["name"]: region for region in document["counts"]["regions"]}
    getppid = regions["getppid"]
    own = [one for one in getppid["functions"] if one["context"] == "own"]
    assert sum(one["cost"]["insns"] for one in own) == 33_700
    iterations = getppid["iterations"]
    assert sum(iterations["own_user"]) + sum(iterations["own_kernel"]) == 33_700


def test_a_failed_run() -> None:
    document = decoded(document_text(failed_report(), "0.1.0"))
    assert document["run"]["run"]["status"] == "boot-failed"
    assert document["run"]["console_tail"] == list(failed_report().run.console_tail)
    assert document["counts"] is None


def test_runs() -> None:
    runs = [stored(1, RunStatus.OK), stored(2, RunStatus.TIMED_OUT)]
    document = decoded(document_text(run_list(runs), "0.1.0"))
    assert [one["run"]["status"] for one in document["runs"]] == ["ok", "timed-out"]
