# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest's kernel chose against what a CPU would have it choose: on recorded guests.

guests/NAME.cpuinfo and NAME.vulnerabilities are of Debian's 6.12.117 (of arm64: 6.1.192) on QEMU
7.2's TCG, made as that CPU ("default": as the machine's own; "zen4-unforced": without what its file
forces).
"""

from pathlib import Path

import pytest

from kdelta.cpus import load_cpu
from kdelta.cpus.representative import paths_not_taken

GUESTS = Path(__file__).parent / "guests"

NO_PCID = "address spaces kept apart by PCID"
NO_XSAVES = "task state by XSAVES"
NO_VECTORS = "vector instructions for crypto and checksums"


def guest(name: str) -> tuple[str, str]:
    """The recorded cpuinfo and vulnerabilities."""
    return (
        (GUESTS / f"{name}.cpuinfo").read_text(),
        (GUESTS / f"{name}.vulnerabilities").read_text(),
    )


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        ("zen2", [NO_XSAVES, NO_VECTORS]),
        ("zen3", [NO_PCID, NO_XSAVES, NO_VECTORS]),
        ("zen4", [NO_PCID, NO_XSAVES, NO_VECTORS]),
        ("skylake-server", [NO_PCID, NO_XSAVES, NO_VECTORS]),
        ("icelake-server", [NO_PCID, NO_XSAVES, NO_VECTORS]),
        ("sapphire-rapids", [NO_PCID, NO_XSAVES, NO_VECTORS]),
        ("zen5", [NO_PCID, NO_XSAVES, NO_VECTORS]),
        ("granite-rapids", [NO_PCID, NO_XSAVES, NO_VECTORS]),
        ("sierra-forest", [NO_PCID, NO_XSAVES, NO_VECTORS]),
        ("neoverse-v2", ["vector state of SVE",
                         "return addresses signed (pointer authentication)"]),
    ],
)  # fmt: skip
def test_a_guest_made_as_a_cpu_differs_in_what_tcg_lacks(cpu: str, expected: list[str]) -> None:
    found = paths_not_taken(load_cpu(cpu), *guest(cpu))
    assert [one.path.name for one in found] == expected
    assert all(one.path.not_emulated for one in found)


def test_words_for_a_mitigation() -> None:
    said = paths_not_taken(load_cpu("zen4"), *guest("zen4-unforced"))[0].text
    assert said.startswith("indirect branches guarded by the CPU (eIBRS, automatic IBRS): each")
    assert "(spectre_v2: Mitigation: Retpolines, not Mitigation: Enhanced / Autom" in said


def test_words_for_a_feature() -> None:
    assert paths_not_taken(load_cpu("zen3"), *guest("zen3"))[0].text == (
        "address spaces kept apart by PCID: each switch of address spaces flushes the TLB (no "
        "pcid, no invpcid); QEMU's TCG has no pcid, invpcid"
    )


def test_the_machines_default_cpu_is_none_of_them() -> None:
    info, said = guest("default")
    assert paths_not_taken(load_cpu("generic-x86-64"), info, said) == ()
    names = [one.path.name for one in paths_not_taken(load_cpu("zen2"), info, said)]
    assert names[0] == "untrained return thunks (retbleed)"
    assert "strings moved by eight bytes an iteration" not in names
    names = [one.path.name for one in paths_not_taken(load_cpu("skylake-server"), info, said)]
    assert names[0] == "page-table isolation with PCID"
    assert "strings moved by the byte (ERMS)" in names
    assert "CPU buffers cleared on the way out (MDS)" in names


def test_a_cpu_priced_as_another_is_reported() -> None:
    names = [one.path.name for one in paths_not_taken(load_cpu("zen3"), *guest("skylake-server"))]
    assert names[0] == "no page-table isolation"
    names = [one.path.name for one in paths_not_taken(load_cpu("zen2"), *guest("zen3"))]
    assert "strings moved by eight bytes an iteration" in names


def test_what_a_kernel_was_not_built_to_do_is_no_difference() -> None:
    info, said = guest("zen2")
    unbuilt = said.replace("Mitigation: untrained return thunk; SMT disabled", "Vulnerable")
    assert unbuilt != said
    assert paths_not_taken(load_cpu("zen2"), info, unbuilt) == paths_not_taken(
        load_cpu("zen2"), info, said
    )


def test_an_older_kernel_knows_fewer_vulnerabilities() -> None:
    info, said = guest("zen2")
    older = "".join(
        f"{line}\n" for line in said.splitlines() if not line.startswith(("retbleed", "tsa"))
    )
    assert len(older) < len(said)
    assert paths_not_taken(load_cpu("zen2"), info, older) == paths_not_taken(
        load_cpu("zen2"), info, said
    )


def test_a_guest_that_said_nothing_could_have_done_anything() -> None:
    cpu = load_cpu("zen2")
    found = paths_not_taken(cpu, "", "")
    assert [one.path for one in found] == list(cpu.paths)
    assert "the guest did not say which features its CPU has" in found[-1].text
    assert "the guest did not say which mitigations it uses" in found[0].text


def test_arms_features_are_read_too() -> None:
    cpu = load_cpu("zen3")
    info = "processor\t: 0\nFeatures\t: fp asimd erms\n"
    names = [one.path.name for one in paths_not_taken(cpu, info, "meltdown: Not affected\n")]
    assert "strings moved by the byte (ERMS)" not in names
