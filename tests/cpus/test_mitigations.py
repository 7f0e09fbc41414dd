# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel says of its mitigations where it has no microcode."""

from pathlib import Path

import pytest

from kdelta.cpus import list_cpus, load_cpu
from kdelta.cpus.representative import NOT_AFFECTED, paths_not_taken, said_of, without_microcode

GUESTS = Path(__file__).parent / "guests"
TSA = "CPU buffers cleared on the way out (TSA)"
MITIGATED = sorted(
    (cpu.name, path.name, name)
    for cpu in list_cpus().values()
    for path in cpu.paths
    for name, words in path.mitigations.items()
    if words != NOT_AFFECTED
)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("Vulnerable: No microcode", "Vulnerable: No microcode"),
        ("Vulnerable: no microcode", "Vulnerable: no microcode"),
        ("Vulnerable: NO MICROCODE; SMT vulnerable", "Vulnerable: NO MICROCODE"),
        ("Not affected; Vulnerable, no microcode", "Vulnerable, no microcode"),
        # These are executed all the same.
        ("Vulnerable: Clear CPU buffers attempted, no microcode; SMT Host state unknown", ""),
        ("Vulnerable: Safe RET, no microcode", ""),
        ("Mitigation: Safe RET, no microcode", ""),
        # These have nothing to do with it.
        ("Vulnerable", ""),
        ("Vulnerable: Microcode, no safe RET", ""),
        ("Mitigation: Microcode", ""),
        ("Not affected", ""),
        ("", ""),
    ],
)
def test_words_of_a_file_log_what_is_lost_for_want_of_microcode(words: str, part: str) -> None:
    assert without_microcode(words) == part


def test_lines_of_a_guest_are_by_file() -> None:
    assert said_of("tsa: Vulnerable: No microcode\n\nodd\nmds: Not affected\n") == {
        "tsa": "Vulnerable: No microcode",
        "mds": "Not affected",
    }


def test_a_zen4_without_microcode_in_a_newer_kernel_has_lost_verw() -> None:
    info = (GUESTS / "zen4-unforced.cpuinfo").read_text()
    said = (GUESTS / "zen4-unforced.vulnerabilities").read_text()
    newer = said.replace("Clear CPU buffers attempted, no microcode", "No microcode")
    assert newer != said
    cpu = load_cpu("zen4")
    before, after = (paths_not_taken(cpu, info, words) for words in (said, newer))
    (found,) = [one for one in after if one not in before]
    assert found.path.name == TSA
    assert found.signs == ("tsa: Vulnerable: No microcode, not Mitigation: Clear CPU buffers",)


@pytest.mark.parametrize(("name", "path", "file"), MITIGATED)
def test_no_microcode_is_recognised_for_every_mitigation_of_every_cpu(
    name: str, path: str, file: str
) -> None:
    cpu = load_cpu(name)
    found = paths_not_taken(cpu, "flags\t: none\n", f"{file}: Vulnerable: No microcode\n")
    signs = [sign for one in found if one.path.name == path for sign in one.signs]
    assert any(sign.startswith(f"{file}: Vulnerable: No microcode") for sign in signs)


def test_no_microcode_against_what_the_cpu_is_not_affected_by_is_no_difference() -> None:
    said = "mds: Vulnerable: No microcode\n"
    found = paths_not_taken(load_cpu("sapphire-rapids"), "flags\t: none\n", said)
    assert not any("microcode" in sign for one in found for sign in one.signs)
