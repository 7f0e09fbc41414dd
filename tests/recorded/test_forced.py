# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/forced keeps: kernels took what each CPU file forces, and what that changed."""

import pytest
from forced_cpus import FOLDER, OPERATIONS, Change, Record, cpus, records, with_tables

from kdelta.cpus.catalog import load_cpu

RECORDS = records()
RELEASES = ("6.1.0-57-cloud-amd64", "6.12.117+deb12-cloud-amd64", "7.2.12+deb14-cloud-amd64")


def record(cpu: str, release: str) -> Record:
    (found,) = (one for one in RECORDS if (one.cpu, one.release) == (cpu, release))
    return found


def change(cpu: str, operation: str) -> Change:
    """On 6.12."""
    changes = record(cpu, RELEASES[1]).changes
    (found,) = (one for one in changes if one.operation == operation)
    return found


def test_each_cpu_file_was_run_on_each_kernel_and_the_readme_has_all() -> None:
    assert {(one.cpu, one.release) for one in RECORDS} == {
        (cpu, release) for cpu in cpus() for release in RELEASES
    }
    assert all([each.operation for each in one.changes] == [*OPERATIONS] for one in RECORDS)
    text = (FOLDER / "README.md").read_text()
    assert with_tables(text, RECORDS) == text


@pytest.mark.parametrize("one", RECORDS, ids=lambda one: f"{one.cpu}-{one.release}")
def test_a_kernel_took_what_the_file_forces_and_counts_repeat(one: Record) -> None:
    assert one.repeats
    assert one.forced == load_cpu(one.cpu).qemu.force
    # Zen 2 has its switch against speculative stores from QEMU.
    before, after = one.mitigations.get("spec_store_bypass", ("Vulnerable", "Mitigation"))
    assert (before, after.partition(":")[0]) == ("Vulnerable", "Mitigation")
    assert ("spec_store_bypass" in one.mitigations) == (one.cpu != "zen2")


def test_figures_are_explained_by_the_functions_that_are_known_for_it() -> None:
    """Ice Lake clears the branch history at each call, Skylake writes IBRS, Zen 4 has FSRM."""
    ice, sky = change("icelake-server", "getppid"), change("skylake-server", "getppid")
    assert (ice.forced - ice.plain, ice.functions) == (110, {"clear_bhb_loop": 110})
    to_user = "arch_exit_to_user_mode_prepare.constprop.0"  # IBPB before it, against VMSCAPE
    assert sky.functions == {"syscall_return_via_sysret": 6, "entry_SYSCALL_64": 5, to_user: 3}
    assert sky.forced - sky.plain == 14
    zen = change("zen4", "open-close")
    assert zen.functions["memset_orig"] < -700
    assert zen.forced - zen.plain == pytest.approx(-827, abs=30)
