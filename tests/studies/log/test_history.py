# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta log` over a store of runs that never took place."""

import datetime
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kdelta.cli import main as cli
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.history import LEFT_OPEN
from kdelta.kernels.model import Kernel
from kdelta.measures.cycles.effects import Cycles, Traced
from kdelta.report.measured import MODEL_CYCLES
from kdelta.spec.errors import LabError, UserError
from kdelta.store.store import Store
from kdelta.studies.log import study as module
from kdelta.studies.log.lineage import distinct_names, lineages
from tests.cli.captured import without_head
from tests.kernels.git_trees import commit, git, write_tree
from tests.report.example import report
from tests.report.example_cycles import cycle_effects
from tests.studies.log.histories import (
    DEBIAN,
    MACHINE,
    doubtful_if_few,
    log,
    only,
    ran,
    three,
    track_of,
    words,
)

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def store(own_data: Path, own_cache: Path) -> Iterator[Store]:
    assert own_cache.is_dir()
    with Store.open(own_data) as opened:
        yield opened


def test_kernels_in_the_order_of_their_versions(store: Store) -> None:
    three(store)
    series = only(log(store))
    assert [one.version for one in series.kernels] == ["6.1.99-1", "6.1.192-2", "6.12.9-1"]
    assert [one.name for one in series.kernels] == ["6.1.99-1", "6.1.192-2", "6.12.9-1"]
    assert words(series, "stat") == ["", "same", "slower"]
    assert words(series, "uname") == ["", "faster", "same"]
    assert [len(one.runs) for one in series.kernels] == [3, 3, 3]
    assert series.ordered == "version"
    levels = [total.level for total in series.totals]
    assert levels == pytest.approx([100, 100 * 0.9**0.5, 100 * (0.9 * 1.5) ** 0.5])
    assert [total.words for total in series.totals[1:]] == [
        {"same": 1, "faster": 1},
        {"slower": 1, "same": 1},
    ]


def test_one_operation(store: Store) -> None:
    three(store)
    series = only(log(store, operations=("uname",)))
    assert [track.operation for track in series.tracks] == ["uname"]
    points = series.tracks[0].points
    assert [point.figure and int(point.figure.value * 100) for point in points] == [100, 90, 90]
    assert points[1].step is not None
    assert points[1].step.percent == -10
    assert series.totals[-1].level == pytest.approx(90)


def test_other_machines_are_other_series(store: Store) -> None:
    three(store)
    other = {**MACHINE, "cpu": "EPYC"}
    ran(store, "image:a", {"stat": 5, "uname": 6}, machine=other)
    ran(store, "image:b", {"stat": 6, "uname": 6}, machine=other)
    ran(store, "image:lone", {"stat": 1, "uname": 6}, machine={**MACHINE, "memory_mib": 64})
    found = log(store)
    assert [len(one.kernels) for one in found.series] == [3, 2]
    assert [one.machine["cpu"] for one in found.series] == ["qemu64", "EPYC"]
    assert not {one.spec for one in found.series[0].kernels} & {"image:a", "image:b"}
    assert found.left_out == ("alone on its machine, or with what it ran: image:lone",)


def test_another_mode_is_another_series_and_can_be_asked_for(store: Store) -> None:
    three(store)
    direct = {**MACHINE, "mode": "kernel-direct"}
    ran(store, "image:a", {"stat": 5, "uname": 6}, machine=direct)
    ran(store, "image:b", {"stat": 6, "uname": 6}, machine=direct)
    assert [len(one.kernels) for one in log(store).series] == [3, 2]
    assert only(log(store, mode="kernel-direct")).machine["mode"] == "kernel-direct"
    assert "mode" not in only(log(store, mode="user")).machine
    with pytest.raises(UserError, match="syscalls was not run in the mode kernel-skip"):
        log(store, mode="kernel-skip")


def test_another_form_of_the_workload_is_another_series(store: Store) -> None:
    """A step would be the workload's own."""
    three(store)
    for spec in ("image:a", "image:b"):
        ran(store, spec, {"stat": 999, "uname": 6}, form="c")
    assert [len(one.kernels) for one in log(store).series] == [3, 2]


def test_kernels_with_modules_of_their_own_are_one_series(store: Store) -> None:
    for number, spec in enumerate(("image:a", "image:b", "image:c")):
        ran(store, spec, {"stat": 100 + number}, form="def"[number])
    series = only(log(store))
    assert len(series.kernels) == 3
    assert any("files of its own" in note for note in series.notes)


def test_runs_of_an_operation_alone_are_no_series(store: Store) -> None:
    three(store)
    for spec, release in (("6.12.9", "6.12.9-1"), ("6.1.0-56", "6.1.192-2")):
        ran(store, DEBIAN.format(spec, release), {"stat": 210}, form="e", runs=8)
    assert [len(one.tracks) for one in log(store).series] == [2]
    assert [len(one.kernels) for one in log(store, operations=("stat",)).series] == [3]


def test_runs_of_an_operation_alone_decide(store: Store) -> None:
    """One run of each leaves a step open; eight of it alone are there and tell."""
    for spec, cost in (("image:a", 200), ("image:b", 300)):
        ran(store, spec, {"stat": cost, "uname": 5}, runs=1)
    series = only(log(store))
    assert words(series, "stat") == ["", "unresolved"]
    assert series.tracks[0].points[1].step is not None
    assert (
        series.tracks[0].points[1].step.reason
        == "one run on a side has no spread: --perturb makes more"
    )


@pytest.mark.parametrize("workload", ["wisconsin", "wisconsin:loops=2"])
def test_operations_that_make_each_others_state_are_judged_by_runs_alone(
    store: Store, workload: str
) -> None:
    for spec, cost in (("image:a", 200), ("image:b", 300)):
        for at in range(3):
            varied = {"total": cost + 200 * at, "min": 5}
            ran(store, spec, varied, runs=1, first=at, workload=workload)
        ran(store, spec, {"total": 2 * cost}, runs=8, form="e", workload=workload)
    series = only(log(store, workload=workload))
    track = track_of(series, "total")
    assert track is not None
    assert track.points[1].step is not None
    effect = track.points[1].step.effect
    assert effect is not None
    assert (effect.n, effect.exact) == (8, True)


def test_what_chance_may_have_made_is_open(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    three(store)
    for spec, release, cost in (("6.12.9", "6.12.9-1", 300), ("6.1.0-56", "6.1.192-2", 200)):
        ran(store, DEBIAN.format(spec, release), {"stat": cost}, form="e", runs=8)
    monkeypatch.setattr("kdelta.infer.effects.chance.by_chance", doubtful_if_few)
    series = only(log(store))
    # Of stat there are eight runs alone of the last two kernels, of uname none.
    assert words(series, "stat") == ["", "same", "slower"]
    assert words(series, "uname") == ["", "unresolved", "same"]
    track = track_of(series, "uname")
    assert track is not None
    assert track.points[1].step is not None
    assert track.points[1].step.reason == LEFT_OPEN


def test_the_same_code_linked_again_is_placement(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(store)
    monkeypatch.setattr(module, "relinked_regions", lambda _base, _other: ("stat",))
    series = only(log(store))
    assert words(series, "stat") == ["", "same", "placement only"]
    assert words(series, "uname") == ["", "faster", "same"]


def test_a_step_that_a_lost_mitigation_decides_is_not_comparable(store: Store) -> None:
    said = b"spec_rstack_overflow: Vulnerable: %s\n"
    for spec, words_, more in (
        ("image:a", b"Safe RET, no microcode", {"srso_safe_ret": 300}),
        ("image:b", b"No microcode", {}),
    ):
        held = {"vulnerabilities": said % words_, "cpuinfo": b"flags\t: none\n"}
        ran(store, spec, {"stat": 20_000, "uname": 100}, attachments=held, more=more)
    ran(store, "image:c", {"stat": 9_000, "uname": 100}, attachments={"vulnerabilities": said})
    series = only(log(store))
    assert words(series, "stat") == ["", Word.NOT_COMPARABLE, Word.FASTER]
    assert words(series, "uname") == ["", Word.NOT_COMPARABLE, Word.SAME]
    track = track_of(series, "stat")
    assert track is not None
    step = track.points[1].step
    assert step is not None
    assert step.reason.startswith("only base executes srso_safe_ret: other does without")


def test_the_last_kernels(store: Store) -> None:
    three(store)
    series = only(log(store, limit=2))
    assert [one.name for one in series.kernels] == ["6.1.192-2", "6.12.9-1"]
    assert series.notes == ("1 earlier kernels are left out (-n)",)


def test_kernels_that_are_named(store: Store) -> None:
    three(store)
    for words_ in (("6.1.0-9", "6.12.9"), ("6.1.99-1", "linux-image-6.12")):
        series = only(log(store, kernels=words_))
        assert [one.name for one in series.kernels] == ["6.1.99-1", "6.12.9-1"]
    identity = only(log(store)).kernels[2].identity
    assert only(log(store, kernels=(identity, "6.1.0-9"))).kernels[1].identity == identity


def test_since(store: Store) -> None:
    three(store)
    assert len(only(log(store, since="6.1.100")).kernels) == 2
    assert len(only(log(store, since="2026-01-01")).kernels) == 3
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    with pytest.raises(UserError, match="no kernel since"):
        log(store, since=f"{tomorrow:%Y-%m-%d}")
    with pytest.raises(UserError, match="neither a date nor a version: yesterday"):
        log(store, since="yesterday")


def test_commits_in_the_order_of_the_repository(store: Store, tmp_path: Path) -> None:
    """Though they were run in another one, and all say the same version."""
    folder = write_tree(tmp_path / "linux")
    names = [commit(folder, f"commit {number}", **{"a.c": f"{number}\n"}) for number in range(3)]
    hashes = [git(folder, "rev-parse", f"HEAD~{back}").strip() for back in (2, 1, 0)]
    assert len(names) == 3
    for at in (1, 2, 0):
        ran(store, f"git:{folder}@{hashes[at]}", {"stat": 100 * (1 + at)})
    ran(store, f"tree:{folder}", {"stat": 400})
    series = only(log(store))
    assert [one.subject for one in series.kernels] == ["commit 0", "commit 1", "commit 2", ""]
    assert [one.dated for one in series.kernels] == ["commit"] * 3 + ["run"]
    assert series.kernels[0].name == hashes[0][:12]
    assert series.ordered == "version, then commit"
    assert words(series, "stat") == ["", "slower", "slower", "slower"]


def test_a_repository_that_is_gone_orders_nothing(store: Store) -> None:
    for number, commit_ in enumerate("ba"):
        ran(store, f"git:/no/such/repo@{commit_ * 40}", {"stat": 100 + number})
    series = only(log(store))
    assert [one.name for one in series.kernels] == ["b" * 12, "a" * 12]
    assert [one.dated for one in series.kernels] == ["run", "run"]
    assert series.ordered == "version, then when they were first run"


def test_names_are_what_tells_kernels_apart(store: Store) -> None:
    specs = [
        "tree:/src/linux +/home/me/my.config +/home/me/fix.patch",
        "tree:/src/linux +/home/me/my.config +order:/tmp/order.txt",
        "tree:/src/linux +/home/me/my.config",
        "deb:linux-image-6.1.0-9-amd64=6.1.99-1",
        "what is no spec",
    ]
    for spec in specs:
        ran(store, spec, {"stat": 1}, release="6.12.0" if "deb" not in spec else "6.1.0-9-amd64")
    found = lineages(store.runs())
    names = dict(zip((one.spec for one in found), distinct_names(found), strict=True))
    assert names[specs[3]] == "linux-image-6.1.0-9-amd64"
    assert names[specs[0]] == "/src/linux with my.config and fix.patch"
    assert names[specs[1]] == "/src/linux with my.config and order.txt"
    assert names[specs[4]] == "what is no spec"
    alike = [one for one in found if one.spec in specs[:3]]
    assert distinct_names(alike) == [
        "/src/linux with fix.patch",
        "/src/linux with order.txt",
        "/src/linux without",
    ]


def test_boot_parameters_are_part_of_a_kernels_name(store: Store) -> None:
    deb = "deb:linux-image-6.1.0-9-amd64=6.1.99-1"
    specs = [deb, f"{deb} +cmdline:root=/dev/a", f"{deb} +cmdline:nosmt"]
    for spec in specs:
        ran(store, spec, {"stat": 1}, release="6.1.0-9-amd64")
    found = lineages(store.runs())
    names = dict(zip((one.spec for one in found), distinct_names(found), strict=True))
    assert [names[spec] for spec in specs] == [
        "6.1.99-1 without",
        "6.1.99-1 with root=/dev/a",
        "6.1.99-1 with nosmt",
    ]


def test_the_same_name_twice_is_told_by_identity(store: Store) -> None:
    ran(store, "tree:/src/linux", {"stat": 1})
    found = lineages(store.runs())
    twice = [found[0], msgspec.structs.replace(found[0], identity="f" * 64)]
    assert distinct_names(twice) == [
        f"/src/linux ({found[0].identity[:12]})",
        "/src/linux (ffffffffffff)",
    ]


def _looks_like(cpu: CPU) -> dict[str, str | int | float]:
    named = {"cpu": cpu.qemu.cpu, "append": cpu.qemu.append, "force": " ".join(cpu.qemu.force)}
    return {**MACHINE, **named}


def test_a_run_without_what_the_cpu_forces_is_not_on_it(store: Store) -> None:
    cpu = load_cpu("zen3")
    ran(store, "image:a", {"uname": 5}, machine={**_looks_like(cpu), "force": "fsrm"})
    with pytest.raises(UserError, match="not run on a machine that looks like zen3"):
        log(store, cpus=(cpu,))


def test_model_cycles_of_what_is_traced(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = load_cpu("zen3")
    machine = _looks_like(cpu)
    traced = {"traces": b"t", "symbols": b"s"}
    for spec, attachments in (("image:a", traced), ("image:b", traced), ("image:c", {})):
        ran(store, spec, {"uname": 5, "stat": 7}, machine=machine, attachments=attachments)
    three(store)
    monkeypatch.setattr(
        "kdelta.studies.log.steps.CachedKernels.find",
        lambda _self, identity: Kernel(identity, "x", "/x", "x86_64", "6.12.0"),
    )
    placed = type(
        "Placed", (msgspec.Struct,), {"__annotations__": {"traces": tuple, "places": tuple}}
    )
    monkeypatch.setattr(
        "kdelta.measures.cycles.measure.placed_run", lambda *_: placed(traces=(), places=())
    )
    pairs = []

    def between(base: Traced, other: Traced, *_: object, **_more: object) -> Cycles | None:
        pairs.append((base.placed is not None, other.placed is not None))
        effects = cycle_effects(report().others[0].effects, "zen3")
        return Cycles(effects) if other.placed is not None else None

    monkeypatch.setattr("kdelta.measures.cycles.measure.cycles_between", between)
    series = only(log(store, cpus=(cpu,)))
    assert series.cpu is not None
    assert series.cpu.name == "zen3"
    assert pairs == [(True, True)]
    track = track_of(series, "uname")
    assert track is not None
    steps = [point.measured.get(MODEL_CYCLES) for point in track.points]
    assert steps[0] is None
    assert steps[1] is not None
    assert steps[1].word is Word.PLACEMENT_ONLY
    assert steps[2] is None
    assert any("image:c) are not known: none of its runs was traced" in n for n in series.notes)


def test_a_kernel_that_the_cache_has_no_more(store: Store) -> None:
    cpu = load_cpu("zen3")
    machine = _looks_like(cpu)
    for spec in ("image:a", "image:b"):
        ran(store, spec, {"uname": 5}, machine=machine)
    series = only(log(store, cpus=(cpu,)))
    assert all("no longer in the cache" in note for note in series.notes)
    assert words(series, "uname") == ["", "same"]


def test_it_was_not_run(store: Store) -> None:
    three(store)
    with pytest.raises(UserError, match="the workload nat was not run yet") as caught:
        log(store, workload="nat")
    assert "kdelta compare A B -w nat" in caught.value.hint
    with pytest.raises(UserError, match="no-such"):
        log(store, workload="no-such")
    with pytest.raises(UserError, match="looks like zen2"):
        log(store, cpus=(load_cpu("zen2"),))


def test_one_kernel_only(store: Store) -> None:
    ran(store, "image:a", {"stat": 5})
    with pytest.raises(UserError, match="nothing to hold image:a against") as caught:
        log(store)
    assert "kdelta compare A B" in caught.value.hint
    three(store)
    with pytest.raises(UserError, match="nothing to hold"):
        log(store, kernels=("6.12.9",))


def test_names_that_are_none(store: Store) -> None:
    three(store)
    with pytest.raises(UserError, match=r"no kernel in the store is called 6\.12\.8") as caught:
        log(store, kernels=("6.12.8",))
    assert "did you mean 6.12.9?" in caught.value.hint
    with pytest.raises(UserError, match="has the operation statt") as caught:
        log(store, operations=("statt",))
    assert caught.value.hint == "did you mean stat?"
    with pytest.raises(UserError, match="has the operation qqqq") as caught:
        log(store, operations=("stat", "qqqq"))
    assert caught.value.hint == "there is: stat, uname"


def test_counts_that_are_lost(store: Store, own_data: Path) -> None:
    three(store)
    blob = store.runs()[0].counts_blob
    assert blob is not None
    (own_data / "blobs" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(LabError, match="has lost a blob"):
        log(store)


def test_many_series(store: Store) -> None:
    for number in range(module.MOST_SERIES + 2):
        machine = {**MACHINE, "memory_mib": 100 + number}
        for spec in ("image:a", "image:b"):
            ran(store, spec, {"stat": 5}, machine=machine, runs=1)
    found = log(store)
    assert len(found.series) == module.MOST_SERIES
    assert found.left_out[-1].startswith("2 more series, of 2 kernels at most")


def test_the_command(store: Store, capsys: Captured, tmp_path: Path) -> None:
    three(store)
    page = tmp_path / "log.html"
    assert cli.ended(["log", "-o", "stat", "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    assert store.last is None, "it looks at what was asked for before"
    assert without_head(printed).startswith(
        "From 6.1.99-1 to 6.12.9-1, over 3 kernels, the path changed by +50.0%"
    )
    assert "<svg" in page.read_text()
    assert cli.ended(["log", "--json"]) == 0
    document = capsys.readouterr().out
    assert '"schema": "kdelta.log/3"' in document
    assert cli.ended(["report", "--list"]) == 0
    listed = capsys.readouterr().out
    assert "log      stat        1 slower" in listed
    assert cli.ended(["report", store.studies()[1].id]) == 0
    assert capsys.readouterr().out == printed
    assert cli.ended(["report", "--format", "json"]) == 0
    assert capsys.readouterr().out == document
    assert cli.ended(["log", "nothing-like-that"]) == 2


def test_a_page_that_cannot_be_written_is_reported_first(store: Store, capsys: Captured) -> None:
    three(store)
    assert cli.ended(["log", "--html", "/no/such/folder/log.html"]) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert "there is no folder /no/such/folder" in said
    assert store.studies() == []
