# SPDX-License-Identifier: GPL-2.0-or-later
"""What trees grant, asked of their Kconfig files alone, on the fake tree."""

import shutil
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.kernels.build.granted import PURPOSE, grants
from kdelta.kernels.sources.source import Source, source_of, with_files
from kdelta.spec.kernel import SourceSpec, parse_kernel_spec
from tests.conftest import FakeProgram
from tests.kernels.trees import fake_tree

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


def test_files_that_somebody_removed_are_written_again(spec: SourceSpec, source: Source) -> None:
    with grants(spec, source.folder, quiet) as granted:
        found = granted(source)
    shutil.rmtree(source.folder / "kconfig")
    with grants(spec, source.folder, quiet) as granted:
        assert granted(source) == found
    (source.folder / "kconfig/Kconfig").write_text("broken")
    with grants(spec, source.folder, quiet) as granted:
        assert granted(source) == found
