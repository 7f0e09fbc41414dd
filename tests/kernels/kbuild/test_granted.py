# SPDX-License-Identifier: GPL-2.0-or-later
"""What trees grant, asked of their Kconfig files alone, on the fake tree."""

import re
import shutil
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.kernels.kbuild.build import BuildRequest, held_source, refused_in
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.kbuild.granted import PURPOSE, grants, refused_first
from kdelta.kernels.obtain import check_kernels, not_built
from kdelta.kernels.sources.source import Source, source_of, with_files
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import SourceSpec, parse_kernel_spec
from kdelta.spec.run import RunStatus
from tests.conftest import FakeProgram
from tests.kernels.trees import failure, fake_tree, kernel, patch

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def spec(tmp_path: Path) -> SourceSpec:
    words = "+CONFIG_DEBUG_KERNEL=y +CONFIG_DEBUG_LOCK=y"
    found = parse_kernel_spec(f"{fake_tree(tmp_path)} {words}")
    assert isinstance(found, SourceSpec)
    return found


@pytest.fixture
def source(spec: SourceSpec) -> Source:
    found = source_of(spec, quiet)
    assert isinstance(found, Source)
    return found


def test_a_config_and_that_of_other_trees(spec: SourceSpec, source: Source, tmp_path: Path) -> None:
    text = (tmp_path / "linux/Kconfig").read_text()
    more = with_files(source, {"Kconfig": text.replace("select TRACE", "select SLOW")}, quiet)
    help_text = with_files(source, {"Kconfig": f"{text}\n# a comment\n"}, quiet)
    broken = with_files(source, {"Kconfig": text, "scripts/fake.py": "raise SystemExit(1)"}, quiet)
    with grants(spec, source.folder, quiet) as granted:
        found = granted(source)
        assert found is not None
        assert (found["CONFIG_TRACE"], found.get("CONFIG_SLOW")) == ("y", "n")
        other = granted(more)
        assert other is not None
        assert (other.get("CONFIG_TRACE", "n"), other["CONFIG_SLOW"]) == ("n", "y")
        assert granted(help_text) == found
        assert granted(broken) is None
        assert granted(source) == found


def test_nothing_but_what_configuring_needs_is_there(spec: SourceSpec, source: Source) -> None:
    with grants(spec, source.folder, quiet) as granted:
        granted(source)
    there = {path.name for path in (source.folder / "kconfig").rglob("*") if path.is_file()}
    assert {"Kconfig", "Makefile", "fake.py"} <= there
    assert not any(name.endswith((".h", ".S")) or name == "core.c" for name in there)
    assert not (source.folder / "src").exists()
    assert [path.name for path in source.folder.glob(f"{PURPOSE}*")] == ["granted-x86"]


def test_trees_that_differ_elsewhere_are_asked_once(
    spec: SourceSpec, source: Source, fake_program: FakeProgram, tmp_path: Path
) -> None:
    text = (tmp_path / "linux/kernel/core.c").read_text()
    other = with_files(source, {"kernel/core.c": f"{text}\n"}, quiet)
    with grants(spec, source.folder, quiet) as granted:
        found = granted(source)
        fake_program("make", "#!/bin/sh\nexit 1\n")
        assert granted(other) == found


@pytest.mark.slow
def test_files_that_somebody_removed_are_written_again(spec: SourceSpec, source: Source) -> None:
    with grants(spec, source.folder, quiet) as granted:
        found = granted(source)
    shutil.rmtree(source.folder / "kconfig")
    with grants(spec, source.folder, quiet) as granted:
        assert granted(source) == found
    (source.folder / "kconfig/Kconfig").write_text("broken")
    with grants(spec, source.folder, quiet) as granted:
        assert granted(source) == found


def test_refusal_does_not_wait_for_another_build(source: Source, tmp_path: Path) -> None:
    with held_source(source, quiet):
        found = failure(tmp_path / "linux", "+CONFIG_DEBUG_LIST=y")
    assert found.status is RunStatus.CONFIG_REFUSED
    assert "CONFIG_DEBUG_KERNEL is off" in found.detail


def test_what_will_not_be_built_is_known_before(
    spec: SourceSpec, tmp_path: Path, own_cache: Path
) -> None:
    tree = tmp_path / "linux"
    assert not_built(spec, quiet) is None
    refused = parse_kernel_spec(f"{tree} +CONFIG_DEBUG_LIST=y +cmdline:a")
    found = not_built(refused, quiet)
    assert found is not None
    assert (found.spec, found.status) == (str(refused), RunStatus.CONFIG_REFUSED)
    change = patch(tree, "kernel/core.c", (tree / "kernel/core.c").read_text().split("\n")[0], "")
    change.write_text(re.sub(r"^-(?!--)", "-other than ", change.read_text(), flags=re.MULTILINE))
    rejected = not_built(parse_kernel_spec(f"{tree} +{change}"), quiet)
    assert rejected is not None
    assert rejected.status is RunStatus.DOES_NOT_APPLY
    assert not list(own_cache.glob("trees/*/src"))


@pytest.mark.slow
def test_what_is_built_is_not_asked_again(tmp_path: Path, own_cache: Path) -> None:
    tree = fake_tree(tmp_path)
    kernel(tree, "+CONFIG_DEBUG_KERNEL=y")
    spec = parse_kernel_spec(f"{tree} +CONFIG_DEBUG_KERNEL=y")
    assert isinstance(spec, SourceSpec)
    assert refused_first(spec, quiet) is None
    assert not list(own_cache.glob("trees/*/kconfig"))


@pytest.mark.slow
def test_a_patch_of_code_asks_nothing_new(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = fake_tree(tmp_path)
    code = patch(tree, "kernel/core.c", (tree / "kernel/core.c").read_text().split("\n")[0], "")
    asked: list[str] = []

    def counted(request: BuildRequest, folder: Path, purpose: str) -> NoKernel | None:
        asked.append(request.spec)
        return refused_in(request, folder, purpose)

    monkeypatch.setattr("kdelta.kernels.kbuild.granted.refused_in", counted)
    refused = f"{tree} +CONFIG_DEBUG_LIST=y"
    for spec in (str(tree), f"{tree} +{code}", f"{tree} +CONFIG_DEBUG_KERNEL=y", refused, refused):
        not_built(parse_kernel_spec(spec), quiet)
    named = [str(tree), f"{tree} +CONFIG_DEBUG_KERNEL=y", refused, refused]
    assert asked == [f"tree:{one}" for one in named]
    assert not list(own_cache.glob("trees/*/src"))


def test_files_of_changes_are_looked_at_first(tmp_path: Path) -> None:
    tree = fake_tree(tmp_path)
    (tmp_path / "none.patch").write_text("no diff\n")
    check_kernels([f"{tree} +defconfig"], quiet)
    with pytest.raises(UserError, match="is neither a patch"):
        check_kernels([str(tree), f"{tree} +{tmp_path}/none.patch"], quiet)
    with pytest.raises(UserError, match=r"there is no file .*away\.config"):
        check_kernels([str(tree), f"{tree} +{tmp_path}/away.config"], quiet)
