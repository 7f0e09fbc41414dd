# SPDX-License-Identifier: GPL-2.0-or-later
"""Two variables of which each CPU uses one: real kernels that differ in where these are linked."""

import asyncio
import difflib
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.infer.conflicts.changes import Contention, RegionChange
from kdelta.kernels.sources.source import Source, source_file, source_of
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.spec.kernel import SourceSpec, parse_kernel_spec
from kdelta.store.store import Store
from kdelta.studies.conflicts.study import ConflictsRequest, run_conflicts
from kdelta.workloads.catalog import find_workload

pytestmark = [pytest.mark.guest, pytest.mark.build, pytest.mark.slow]

# The small kernel, with names of variables.
SOURCE = "deb-src:linux-source-6.12"
SPEC = f"{SOURCE} +CONFIG_DEBUG_KERNEL=y +CONFIG_KALLSYMS_ALL=y"
FILE = "kernel/sys.c"
PAIR = "getppid-processes"
CALL = "SYSCALL_DEFINE0(getppid)\n{\n\tint pid;\n\n"
VARIABLES = "unsigned long planted_written;\nunsigned long planted_read;\n\n"
WORK = (
    "\tif (raw_smp_processor_id())\n\t\tREAD_ONCE(planted_read);\n"
    "\telse\n\t\tWRITE_ONCE(planted_written, planted_written + 1);\n"
)


@pytest.fixture(scope="module")
def patch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lets the first CPU write a variable in getppid, and the others read the next one."""
    spec = parse_kernel_spec(SOURCE)
    assert isinstance(spec, SourceSpec)
    source = source_of(spec, quiet)
    assert isinstance(source, Source)
    text = source_file(source, FILE)
    assert text is not None
    assert text.count(CALL) == 1
    changed = text.replace(CALL, VARIABLES + CALL + WORK)
    lines = (text.splitlines(keepends=True), changed.splitlines(keepends=True))
    path = tmp_path_factory.mktemp("patch") / "planted.patch"
    path.write_text("".join(difflib.unified_diff(*lines, f"a/{FILE}", f"b/{FILE}")))
    return path


def changes(store: Store, base: str, other: str, *operations: str) -> dict[str, RegionChange]:
    request = ConflictsRequest(kernels=(base, other), operations=operations)
    report = asyncio.run(run_conflicts(request, Lab(store, Silent())))
    assert not report.same_kernel
    return {one.region: one for one in report.changes}


@pytest.mark.timeout(2 * 3600)
def test_variables_that_part_are_data_placement_only(patch: Path, store: Store) -> None:
    linked, moved = (f"{SPEC} +{patch} {how}" for how in ("+sections", "+dshuffle:1"))
    change = changes(store, linked, moved, PAIR)[PAIR]
    assert change.contention is Contention.PLACEMENT
    assert [one.place for one in change.parted] == ["planted_written"]
    assert change.placed == ()


@pytest.mark.timeout(2 * 3600)
def test_no_pair_contends_for_more_or_less_in_another_order_of_variables(
    patch: Path, store: Store
) -> None:
    base, other = (f"{SPEC} +{patch} +dshuffle:{seed}" for seed in (1, 2))
    words = {name: one.contention for name, one in changes(store, base, other).items()}
    assert len(words) == len(find_workload("pairs").operations)
    open_ = (Contention.SAME, Contention.PLACEMENT, Contention.UNRESOLVED)
    assert {name: word for name, word in words.items() if word not in open_} == {}
    assert sum(word is Contention.UNRESOLVED for word in words.values()) < len(words) / 5
