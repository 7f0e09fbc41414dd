# SPDX-License-Identifier: GPL-2.0-or-later
"""What real machines report of their mitigations, compared with the guests of docs/cases/forced."""

import msgspec
import pytest
from forced_cpus import FOLDER, cpus, records
from recorded_machines import (
    Machine,
    deciding,
    explained,
    found,
    machines,
    series_of,
    unlike_its_file,
    with_table,
)

from kdelta.cpus.catalog import load_cpu

MACHINES = machines()
RECORDS = records()
EIBRS = "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; "


def version(kernel: str) -> tuple[int, ...]:
    return tuple(int(number) for number in series_of(kernel).split("."))


def test_each_cpu_file_has_a_machine_of_6_1_or_later_and_the_readme_has_all() -> None:
    recent = {one.cpu for one in MACHINES if version(one.kernel) >= (6, 1)}
    assert recent == {one.cpu for one in MACHINES} == set(cpus())
    text = (FOLDER / "README.md").read_text()
    assert with_table(text) == text


@pytest.mark.parametrize("one", MACHINES, ids=lambda one: f"{one.cpu}-{one.kernel}")
def test_a_machine_reports_what_the_guests_do_or_the_difference_is_explained(one: Machine) -> None:
    assert sorted(found(one, RECORDS)) == sorted(explained(one))
    assert unlike_its_file(one, load_cpu(one.cpu)) == []


@pytest.mark.parametrize("one", MACHINES, ids=lambda one: f"{one.cpu}-{one.kernel}")
def test_a_machine_has_its_source_and_something_to_compare(one: Machine) -> None:
    assert one.source.startswith("https://")
    assert one.bare
    assert not set(one.not_affected) & set(one.files)
    files = {file for each in RECORDS if each.cpu == one.cpu for file in each.mitigations}
    assert "spectre_v2" in files & set(one.reported)
    assert all(each.kind and each.reason for each in one.differences)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("spectre_v2", EIBRS + "PBRSB-eIBRS: SW sequence; BHI: SW loop, KVM: SW loop"),
        ("spectre_v2", EIBRS + "RSB filling; PBRSB-eIBRS: Not affected; BHI: BHI_DIS_S"),
        ("spectre_v2", "Mitigation: Retpolines; IBPB: conditional; BHI: BHI_DIS_S"),
        ("spec_store_bypass", "Vulnerable"),
    ],
)
def test_another_mitigation_is_a_difference_that_is_not_explained(file: str, words: str) -> None:
    (one, *_) = (each for each in MACHINES if each.cpu == "granite-rapids")
    other = msgspec.structs.replace(one, files={**one.files, file: words})
    (first, *rest) = found(other, RECORDS)
    assert {first.file, *(each.file for each in rest)} == {file}
    assert {first.series, *(each.series for each in rest)} == {"6.1", "6.12", "7.2"}
    assert not set(found(other, RECORDS)) & set(explained(other))


def test_a_cpu_file_that_expects_another_mitigation_is_reported() -> None:
    (one,) = (each for each in MACHINES if each.cpu == "zen2")
    other = msgspec.structs.replace(one, files={**one.files, "retbleed": "Vulnerable"})
    wanted = ["retbleed: Mitigation: untrained return thunk"]
    assert unlike_its_file(other, load_cpu("zen2")) == wanted


@pytest.mark.parametrize(
    ("file", "one", "other"),
    [
        ("mds", "Mitigation: Clear CPU buffers; SMT disabled", "Mitigation: Clear CPU buffers"),
        ("spec_rstack_overflow", "Mitigation: safe RET", "Mitigation: Safe RET"),
        (
            "spectre_v2",
            EIBRS + "STIBP: always-on; BHI: SW loop, KVM: SW loop",
            EIBRS + "BHI: SW loop",
        ),
        ("spectre_v2", "Mitigation: Enhanced IBRS, RSB filling", EIBRS[:38] + " RSB filling"),
        ("spectre_v2", "Mitigation: Retpolines; IBRS_FW", "Mitigation: Retpolines"),
    ],
)
def test_siblings_firmware_and_exits_of_guests_decide_nothing(
    file: str, one: str, other: str
) -> None:
    assert deciding(file, one) == deciding(file, other)


@pytest.mark.parametrize(
    ("file", "one", "other"),
    [
        ("tsa", "Mitigation: Clear CPU buffers", "Vulnerable: No microcode"),
        ("spectre_v2", "Mitigation: IBRS; BHI: Not affected", "Mitigation: IBRS; BHI: Vulnerable"),
        ("spectre_v2", "Mitigation: IBRS", "Mitigation: Enhanced / Automatic IBRS"),
        ("spectre_v2", "Mitigation: Retpolines; RSB filling", "Mitigation: Retpolines"),
    ],
)
def test_what_the_kernel_executes_decides(file: str, one: str, other: str) -> None:
    assert deciding(file, one) != deciding(file, other)


def test_the_series_of_a_release_is_its_first_two_numbers() -> None:
    assert series_of("6.12.117+deb12-cloud-amd64") == "6.12"
    assert series_of("6.1.0-56-cloud-amd64") == "6.1"
