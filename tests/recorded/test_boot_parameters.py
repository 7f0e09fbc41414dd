# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/boot-parameters keeps of known causes is what its text says."""

import boot_parameters
import pytest
from boot_parameters import BEGIN, END, FOLDER, OPERATIONS, TRIALS, Record, Row, records, table

from kdelta.kernels.model import booted_identity

RECORDS = {one.trial.name: one for one in records()}


def rows(name: str) -> dict[str, Row]:
    return {row.operation: row for row in RECORDS[name].rows}


def named(row: Row) -> dict[str, float]:
    return dict(row.functions)


def test_there_is_a_record_of_each_trial_and_the_table_has_them() -> None:
    assert list(RECORDS) == [trial.name for trial in TRIALS]
    text = (FOLDER / "README.md").read_text()
    assert text.partition(BEGIN)[2].partition(END)[0].strip() == table(records())


@pytest.mark.parametrize("one", RECORDS.values(), ids=lambda one: one.trial.name)
def test_both_sides_are_one_kernel_and_functions_add_up(one: Record) -> None:
    assert one.trial in TRIALS
    assert one.other == f"{one.base} +cmdline:{one.trial.parameter}"
    assert one.identities[1] == booted_identity(one.identities[0], [one.trial.parameter])
    assert len(one.rows) == 44
    assert {row.operation for row in one.rows} >= set(OPERATIONS)
    for row in one.rows:
        assert row.base + row.diff == pytest.approx(row.other, abs=2e-4)
        assert sum(named(row).values()) + row.rest == pytest.approx(row.diff, abs=2e-4)
        assert row.low <= row.diff <= row.high


@pytest.mark.parametrize(
    ("trial", "operation", "functions"),
    [
        ("pti-on", "getppid", {"syscall_return_via_sysret": 6, "entry_SYSCALL_64": 4}),
        ("pti-off-skylake", "getppid", {"syscall_return_via_sysret": -6, "entry_SYSCALL_64": -4}),
        ("mitigations-off-skylake", "getppid", {"its_return_thunk": -4, "entry_SYSCALL_64": -4}),
        ("spectre_v2-off", "poll-10", {"__x86_indirect_thunk_rax": -30, "do_sys_poll": 10}),
        ("init_on_alloc-0", "chdir", {"memset_orig": -724}),
        ("hardened_usercopy-off", "chdir", {"__check_object_size": -68, "__virt_addr_valid": -50}),
        (
            "randomize_kstack_offset-off",
            "getppid",
            {"do_syscall_64": -6, "arch_exit_to_user_mode_prepare": -5},
        ),
        (
            "cgroup_disable-memory",
            "page-fault",
            {"__mod_memcg_lruvec_state": -62.224, "__cgroup_rstat_updated": -42},
        ),
        ("audit-1", "getppid", {"__audit_syscall_entry": 51, "syscall_trace_enter": 39}),
    ],
)
def test_the_functions_of_a_known_cause_are_named(
    trial: str, operation: str, functions: dict[str, float]
) -> None:
    found = named(rows(trial)[operation])
    for name, diff in functions.items():
        assert found[name] == pytest.approx(diff, abs=0.01)


@pytest.mark.parametrize("trial", ["randomize_kstack_offset-on", "audit-0", "without-effect"])
def test_without_effect_all_operations_are_the_same(trial: str) -> None:
    assert {row.word for row in rows(trial).values()} == {"same"}


def test_spectre_v2_is_warned_of_and_the_kernel_says_that_it_took_it() -> None:
    (warning,) = RECORDS["spectre_v2-off"].warnings
    assert "spectre_v2=off may be without effect" in warning
    ((name, before, after),) = RECORDS["spectre_v2-off"].chose
    assert name == "spectre_v2"
    assert before.startswith("Mitigation: Retpolines")
    assert after.startswith("Vulnerable")
    assert all(not one.warnings for name, one in RECORDS.items() if name != "spectre_v2-off")


def test_a_record_that_is_missing_is_missing_in_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boot_parameters, "TRIALS", TRIALS[:1])
    assert [one.trial for one in records()] == [TRIALS[0]]
