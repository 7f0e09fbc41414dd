# SPDX-License-Identifier: GPL-2.0-or-later
"""Series of patches on the fake tree: real patches, builds and ruling out; planted effects."""

import asyncio
import os
import random
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

from kdelta.host.dirs import cache_dir, data_dir
from kdelta.infer.minimal import Role
from kdelta.infer.paths import RegionPath
from kdelta.infer.series_model import PatchFate, View
from kdelta.kernels import Kernel, NoKernel
from kdelta.kernels.built import BuiltKernel, built_kernels, load_built
from kdelta.kernels.git import GitStore
from kdelta.report.series import series_text
from kdelta.report.series_held import Holds, held
from kdelta.report.series_json import series_json
from kdelta.report.series_model import SeriesReport
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.ablate.measure import Bench, Measured, Region
from kdelta.studies.lab import Lab as RealLab
from kdelta.studies.requests import Silent
from kdelta.studies.series import SeriesRequest, run_series
from tests.infer.planted import exactly
from tests.kernels.sources import commit, git, state
from tests.kernels.trees import fake_tree

EXECUTED = {"start", "start_kernel", "lock", "clear_pages"}
BASE = {"open": 100, "fault": 200, "empty": 4}
SOURCES = ("kernel/core.c", "kernel/lock.c", "mm/pages.c", "drivers/old.c")

LOCK = "\t*it += 1;"
PAGES = "\treturn i + pages[count];"


class Lab:
    """Stands for guests: a source says itself what it costs, in lines such as `cost open 30`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.measured: list[str] = []
        lab = self

        async def measure(
            _: Bench, label: str, kernel: Kernel | NoKernel, **options: Any
        ) -> Measured:
            return lab.measure(label, kernel, options.get("runs") or 0)

        monkeypatch.setattr(Bench, "measure", measure)
        names = frozenset(EXECUTED)
        monkeypatch.setattr("kdelta.studies.touched.executed_names", lambda *_: names)

    def measure(self, label: str, kernel: Kernel | NoKernel, runs: int) -> Measured:
        if isinstance(kernel, NoKernel):
            return Measured(label, kernel, (), {}, kernel.text, kernel.status)
        assert runs in (0, 8)
        built = load_built(kernel.built or "")
        assert built is not None
        self.measured.append(label)
        text = "".join(sources(built).values())
        if "panic" in text:
            return Measured(label, kernel, (), {}, "boot-failed: panic", RunStatus.BOOT_FAILED)
        found = dict(BASE)
        for region, sign, value in re.findall(r"cost (\w+) (-?)(\d+)", text):
            found[region] += int(f"{sign}{value}")
        nothing = exactly(0)
        return Measured(
            label,
            kernel,
            (),
            {
                name: Region("syscalls", RegionPath(exactly(n), exactly(n), nothing))
                for name, n in found.items()
            },
            parts={name: {f"do_{name}": exactly(n)} for name, n in found.items()},
        )


def sources(built: BuiltKernel) -> dict[str, str]:
    store = GitStore(Path(built.folder))
    return {name: (store.blob(f"{built.tree}:{name}") or b"").decode() for name in SOURCES}


class Queue:
    """Patches for the fake tree, each made on top of those before it."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.tree = tree
        self.folder = folder
        commit(tree, "base")
        git(tree, "tag", "base")

    def add(self, subject: str, file: str, before: str, *after: str) -> str:
        """A patch that replaces a line."""
        path = self.tree / file
        text = path.read_text()
        assert f"{before}\n" in text
        changed = text.replace(f"{before}\n", "".join(f"{line}\n" for line in after), 1)
        commit(self.tree, subject, **{file: changed})
        return subject

    def after(self, subject: str, file: str, line: str, *more: str) -> str:
        """A patch that adds lines after one."""
        return self.add(subject, file, line, line, *more)

    def done(self) -> Path:
        """Writes the patches; the tree is as it was then."""
        git(self.tree, "branch", "-f", "work")
        git(self.tree, "format-patch", "-q", "-N", "-o", str(self.folder), "base..work")
        git(self.tree, "checkout", "-q", "base")
        return self.folder


@pytest.fixture
def queue(own_cache: Path, tmp_path: Path) -> Queue:
    assert own_cache.is_dir()
    return Queue(fake_tree(tmp_path), tmp_path / "queue")


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(data_dir()) as opened:
        yield opened


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(monkeypatch)


def usual(queue: Queue) -> SeriesRequest:
    """Five patches: dead code, two that matter, one without effect, and one more that matters and
    needs the first of them.
    """
    queue.after("old: dead", "drivers/old.c", first_line(queue, "drivers/old.c"), "/* dead */")
    queue.after("lock: one", "kernel/lock.c", LOCK, "\t*it += 2; /* cost open 30 */")
    queue.after("pages: zero", "mm/pages.c", "\tint i = 0;", "\tcount += 0;")
    queue.add(
        "pages: two",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost fault -20 */",
    )
    line = "\t*it += 2; /* cost open 30 */"
    queue.add("lock: three", "kernel/lock.c", line, "\t*it += 3; /* cost open 37 */")
    return SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))


def first_line(queue: Queue, file: str) -> str:
    return (queue.tree / file).read_text().splitlines()[0]


def run(request: SeriesRequest, store: Store) -> SeriesReport:
    return asyncio.run(run_series(request, store, Silent()))


def found(report: SeriesReport) -> dict[str, dict[str, int]]:
    """By patch, what is not nought."""
    return {
        row.name: {name: int(e.value) for name, e in row.answer.effects.items() if e.value}
        for row in report.rows
        if any(e.value for e in row.answer.effects.values())
    }


WANTED = {
    "0002-lock-one": {"open": 30},
    "0004-pages-two": {"fault": -20},
    "0005-lock-three": {"open": 7},
}


def fates(report: SeriesReport) -> dict[str, PatchFate]:
    return {row.name: row.answer.fate for row in report.rows}


def checked(report: SeriesReport) -> str:
    """The text, which fits into 80 columns but for names; and the JSON says the same patches."""
    text = series_text(report)
    long = [line for line in text.splitlines() if len(line) > 80 and "/" not in line]
    assert not long
    document = msgspec.json.decode(series_json(report, "0"))
    assert [one["name"] for one in document["patches"]] == [row.name for row in report.rows]
    return text


def test_what_each_patch_does(queue: Queue, store: Store, lab: Lab) -> None:
    request = usual(queue)
    before = state(queue.tree)
    report = run(request, store)
    assert found(report) == WANTED
    assert fates(report)["0001-old-dead"] is PatchFate.RULED_OUT
    zero = next(row for row in report.rows if row.name == "0003-pages-zero")
    assert zero.answer.fate is PatchFate.RULED_OUT
    assert zero.why.endswith("executed objects come out the same with it")
    assert report.proof is not None
    assert report.proof.held is True
    # Both ends, the proof, and two points to tell three patches apart.
    assert len(lab.measured) == len(report.builds) <= 5
    assert state(queue.tree) == before
    text = checked(report)
    assert "0001-old-dead (0)" in text or "0001-old-dead (1)" in text
    assert "0005-lock-three needs 0002-lock-one" in text


def test_all_views(queue: Queue, store: Store, lab: Lab) -> None:
    request = msgspec.structs.replace(usual(queue), views=tuple(View))
    report = run(request, store)
    assert lab.measured
    rows = {row.name: row.answer for row in report.rows}
    one, three = rows["0002-lock-one"], rows["0005-lock-three"]
    assert one.left_out is not None
    assert one.left_out.others == ("0005-lock-three",)
    assert {n: int(e.value) for n, e in one.left_out.effects.items() if e.value} == {"open": 37}
    assert three.alone is not None
    assert three.alone.others == ("0002-lock-one",)
    assert {n: int(e.value) for n, e in three.alone.effects.items() if e.value} == {"open": 7}
    assert not report.interactions
    assert "left out" in checked(report)


def test_asking_again_builds_nothing(queue: Queue, store: Store, lab: Lab) -> None:
    request = usual(queue)
    first = run(request, store)
    assert lab.measured
    logs = {built.key: (built.path / "build.log").stat().st_mtime_ns for built in built_kernels()}
    again = run(request, store)
    assert found(again) == found(first)
    assert [one.identity for one in again.builds] == [one.identity for one in first.builds]
    assert {
        built.key: (built.path / "build.log").stat().st_mtime_ns for built in built_kernels()
    } == logs


def test_patches_that_only_build_together(queue: Queue, store: Store, lab: Lab) -> None:
    queue.after(
        "lock: use",
        "kernel/lock.c",
        LOCK,
        "\tadd(it); /* cost open 5 */",
        "#ifndef add",
        "#error no add",
        "#endif",
    )
    queue.after(
        "lock: add",
        "include/linux/lock.h",
        first_line(queue, "include/linux/lock.h"),
        "#define add(it) (*(it) += 1)",
    )
    queue.add(
        "pages: two",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost fault 9 */",
    )
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))
    report = run(request, store)
    assert lab.measured
    (group,) = report.groups
    assert group.patches == ("0001-lock-use", "0002-lock-add")
    assert "no add" in group.reason
    assert {n: int(e.value) for n, e in group.effects.items() if e.value} == {"open": 5}
    assert found(report) == {"0003-pages-two": {"fault": 9}}
    assert "group 1: 0001-lock-use, 0002-lock-add; the tree up to" in checked(report)


def test_a_build_that_failed_is_not_tried_again_unless_told_to(
    queue: Queue, store: Store, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.after("lock: bad", "kernel/lock.c", LOCK, "#error bad")
    queue.add("lock: good", "kernel/lock.c", "#error bad", "\t*it += 2; /* cost open 5 */")
    queue.add(
        "pages: two",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost fault 9 */",
    )
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))
    asked: list[str] = []
    first = run(request, store)
    assert [one.status for one in first.builds].count("build-failed") == 1
    real = RealLab.kernel

    def kernel(self: RealLab, spec: str) -> Kernel | NoKernel:
        asked.append(spec)
        return real(self, spec)

    monkeypatch.setattr(RealLab, "kernel", kernel)
    again = run(request, store)
    assert found(again) == found(first)
    assert len(asked) == len(first.builds) - 1
    asked.clear()
    run(
        msgspec.structs.replace(request, lab=msgspec.structs.replace(request.lab, again=True)),
        store,
    )
    assert len(asked) == len(first.builds)
    assert lab.measured


def test_the_smallest_set(queue: Queue, store: Store, lab: Lab) -> None:
    queue.after("old: dead", "drivers/old.c", first_line(queue, "drivers/old.c"), "/* dead */")
    queue.after(
        "lock: add",
        "include/linux/lock.h",
        first_line(queue, "include/linux/lock.h"),
        "#define add(it) (*(it) += 1)",
    )
    queue.after("pages: zero", "mm/pages.c", "\tint i = 0;", "\tcount += 0;")
    queue.after(
        "lock: use",
        "kernel/lock.c",
        LOCK,
        "#ifndef add",
        "#error no add",
        "#endif",
        "\tadd(it); /* cost open 50 */",
    )
    queue.add(
        "pages: three",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost open 1 */",
    )
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),), minimal=True)
    report = run(request, store)
    assert report.minimal is not None
    answer = report.minimal.answer
    assert {one.name: one.role for one in answer.members} == {
        "0002-lock-add": Role.NEEDED,
        "0004-lock-use": Role.CULPRIT,
    }
    assert "no add" in answer.members[0].text
    assert {n: int(e.value) for n, e in report.minimal.effects.items() if e.value} == {"open": 50}
    text = checked(report)
    assert "2 patches have the effect of all, within 10" in text
    exact = run(msgspec.structs.replace(request, within=request.within * 0), store)
    assert exact.minimal is not None
    assert [one.name for one in exact.minimal.answer.members] == [
        *("0002-lock-add", "0004-lock-use", "0005-pages-three"),
    ]
    assert lab.measured


def test_a_series_without_effect_has_no_smallest_set(queue: Queue, store: Store, lab: Lab) -> None:
    queue.after("pages: zero", "mm/pages.c", "\tint i = 0;", "\tcount += 0;")
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),), minimal=True)
    report = run(request, store)
    assert report.minimal is None
    assert len(lab.measured) == 2
    assert "All patches together change no region's path" in checked(report)


def test_a_range_of_the_trees_own_commits(queue: Queue, store: Store, lab: Lab) -> None:
    usual(queue)
    request = SeriesRequest(tree=f"git:{queue.tree}@base", patches=("base..work",))
    report = run(request, store)
    assert lab.measured
    wanted = {name.partition("-")[2]: effects for name, effects in WANTED.items()}
    assert found(report) == wanted


def test_ruling_out_that_was_wrong(queue: Queue, store: Store, lab: Lab) -> None:
    queue.after(
        "old: dead", "drivers/old.c", first_line(queue, "drivers/old.c"), "/* cost empty 3 */"
    )
    queue.after("lock: one", "kernel/lock.c", LOCK, "\t*it += 2; /* cost open 30 */")
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))
    report = run(request, store)
    assert report.proof is not None
    assert report.proof.held is False
    assert found(report) == {"0001-old-dead": {"empty": 3}, "0002-lock-one": {"open": 30}}
    assert "ruling out was wrong" in checked(report)
    assert lab.measured


def test_an_end_that_does_not_boot(queue: Queue, store: Store, lab: Lab) -> None:
    queue.after("lock: panic", "kernel/lock.c", LOCK, "\t*it += 2; /* panic */")
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),))
    report = run(request, store)
    assert "with all patches: boot-failed: panic" in report.failure
    assert "nothing to compare" in checked(report)
    assert lab.measured


def test_a_patch_that_does_not_apply(queue: Queue, store: Store, lab: Lab) -> None:
    folder = Path(usual(queue).patches[0])
    bad = folder / "0004-pages-two.patch"
    text, times = re.subn(r"(?m)^(@@ .*\n) ", r"\1 not ", bad.read_text(), count=1)
    assert times == 1  # its first line of context is not the tree's
    bad.write_text(text)
    with pytest.raises(UserError, match=r"0004-pages-two \(4 of 5\) does not apply") as caught:
        run(SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(folder),)), store)
    assert "hunk 1" in caught.value.message
    assert "fuzz" in caught.value.message
    assert not lab.measured


def test_a_kernel_that_is_built_already(store: Store) -> None:
    with pytest.raises(UserError, match="not a source tree"):
        run(SeriesRequest(tree="deb:linux-image-amd64", patches=("x",)), store)


def kept(queue: Queue) -> SeriesRequest:
    """A faster patch, a slower one, one that needs the slower one, and a slower one by itself."""
    queue.add(
        "pages: fast",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost fault -20 */",
    )
    queue.after("lock: slow", "kernel/lock.c", LOCK, "\t*it += 2; /* cost open 30 */")
    line = "\t*it += 2; /* cost open 30 */"
    queue.add("lock: better", "kernel/lock.c", line, "\t*it += 2; /* cost open 10 */")
    queue.add(
        "core: slow",
        "kernel/core.c",
        "	clear_pages(2);",
        "	clear_pages(3); /* cost empty 2 */",
    )
    folder = str(queue.done())
    return SeriesRequest(
        tree=f"git:{queue.tree}@base", patches=(folder,), keep=f"{queue.tree}:fast", drop=True
    )


def messages(tree: Path, branch: str) -> dict[str, list[str]]:
    """By subject, the trailers of each commit of a branch but for the first."""
    text = git(tree, "log", "--format=%s%n%(trailers:only)%x00", f"base..{branch}")
    rows = [row.strip().splitlines() for row in text.split("\0") if row.strip()]
    return {row[0]: row[1:] for row in reversed(rows)}


def test_a_branch_is_kept_and_measured_on_the_next_base(
    queue: Queue, store: Store, lab: Lab
) -> None:
    request = kept(queue)
    tree = queue.tree
    before = (
        state(tree / "mm"),
        git(tree, "status", "--porcelain"),
        git(tree, "rev-parse", "HEAD"),
    )
    report = run(request, store)
    assert report.kept is not None
    assert report.kept.dropped == ("0004-core-slow",)
    assert report.kept.marked == ("0002-lock-slow",)
    base = f"Kdelta-base: linux@base, tree {git(tree, 'rev-parse', 'base^{tree}')[:12]}"
    assert messages(tree, "fast") == {
        "pages: fast": ["Kdelta-effect: syscalls/fault -10.00 % path (exact)", base],
        "lock: slow": [
            "Kdelta-effect: syscalls/open +30.00 % path (exact)",
            "Kdelta-mark: slower",
            base,
        ],
        "lock: better": ["Kdelta-effect: syscalls/open -20.00 % path (exact)", base],
    }
    assert before == (
        *(state(tree / "mm"), git(tree, "status", "--porcelain"), git(tree, "rev-parse", "HEAD")),
    )
    assert "dropped, since slower: 0004-core-slow" in checked(report)

    # The next release has half of the first patch's gain by itself.
    git(tree, "checkout", "-q", "-b", "next", "base")
    commit(tree, "news", **{"kernel/core.c": (tree / "kernel/core.c").read_text() + NEWS})
    new = SeriesRequest(tree=f"git:{tree}@next", patches=(f"{tree}:fast",), keep=f"{tree}:fast")
    again = run(new, store)
    assert [row.name for row in again.rows] == ["pages-fast", "lock-slow", "lock-better"]
    assert again.rows[0].earlier == ("syscalls/fault -10.00 % path (exact)",)
    assert [(one.region, one.now, one.word) for one in held(again)] == [
        ("syscalls/fault", -5.0, Holds.LESS),
        ("syscalls/open", 30.0, Holds.HOLDS),
        ("syscalls/open", -20.0, Holds.HOLDS),
    ]
    assert "what still holds: 2 holds, 1 less" in checked(again)
    assert git(tree, "log", "--format=%s", "next..fast").split("\n")[:-1] == [
        *("lock: better", "lock: slow", "pages: fast"),
    ]
    trailers = messages(tree, "fast")["pages: fast"]
    assert trailers[0] == "Kdelta-effect: syscalls/fault -5.00 % path (exact)"
    assert lab.measured


NEWS = "/* cost fault 200 */\n"


def test_a_branch_that_cannot_be_written_is_told_before_anything_is_built(
    queue: Queue, store: Store, lab: Lab
) -> None:
    request = kept(queue)
    for branch, message in (("work", "kdelta did not write it"), ("a..b", "not a name")):
        bad = msgspec.structs.replace(request, keep=f"{queue.tree}:{branch}")
        with pytest.raises(UserError, match=message):
            run(bad, store)
    assert not lab.measured


MOMENTS = 50


class Doomed:
    """A study in a process of its own, which is killed when it starts a program for the n-th time;
    what it says goes to a file.
    """

    def __init__(self, request: SeriesRequest, said: Path) -> None:
        self.request = request
        self.said = said

    def run(self, moment: int) -> bool:
        """Whether it came to its end."""
        child = os.fork()
        if not child:
            self._study(moment)
        return os.waitpid(child, 0)[1] == 0

    def _study(self, moment: int) -> NoReturn:
        os.setsid()
        left = [moment]
        real, keep, log = subprocess.Popen, RealLab._keep, self._log

        def start(*words: Any, **options: Any) -> Any:
            left[0] -= 1
            found = real(*words, **options)
            if not left[0]:
                os.killpg(0, signal.SIGKILL)
            return found

        def kept_failure(lab: RealLab, failure: NoKernel) -> None:
            keep(lab, failure)
            log(f"failed {failure.identity}")

        subprocess.Popen = start  # type: ignore[assignment, misc]
        RealLab._keep = kept_failure  # type: ignore[assignment]
        talk = Silent()
        talk.say = log  # type: ignore[method-assign]
        try:
            with Store.open(data_dir()) as store:
                asyncio.run(run_series(self.request, store, talk))
        except BaseException as error:  # noqa: BLE001  (it must not return into the test's process)
            log(f"error {error!r}")
            os._exit(1)
        os._exit(0)

    def _log(self, line: str) -> None:
        with self.said.open("a") as file:
            file.write(f"{line}\n")


def test_killed_at_any_moment_no_finished_build_is_repeated(
    queue: Queue, store: Store, lab: Lab, tmp_path: Path
) -> None:
    queue.after("lock: bad", "kernel/lock.c", LOCK, "#error bad")
    queue.add("lock: good", "kernel/lock.c", "#error bad", "\t*it += 2; /* cost open 5 */")
    queue.add(
        "pages: two",
        "mm/pages.c",
        PAGES,
        "\treturn i + 3 * count + pages[count]; /* cost fault 9 */",
    )
    request = SeriesRequest(tree=f"tree:{queue.tree}", patches=(str(queue.done()),), rule_out=False)
    said = tmp_path / "said"
    doomed = Doomed(request, said)
    chance = random.Random(5)
    kills = 0
    while kills < MOMENTS:
        kills += not doomed.run(chance.randint(1, 90))
    report = run(request, store)
    assert found(report) == {"0003-pages-two": {"fault": 9}}
    assert [group.patches for group in report.groups] == [("0001-lock-bad", "0002-lock-good")]
    lines = said.read_text().splitlines()
    assert not [line for line in lines if line.startswith("error")]
    finished = [line.split(" in ")[0] for line in lines if line.startswith(("built", "failed"))]
    assert len(finished) == len(set(finished)) == 4
    assert not list(cache_dir("work").iterdir())
    assert lab.measured
