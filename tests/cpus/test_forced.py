# SPDX-License-Identifier: GPL-2.0-or-later
"""Features that a CPU file forces in the guest's kernel: which may be, and whether they took."""

from pathlib import Path

import pytest

from kdelta.cpus import load_cpu
from kdelta.cpus.catalog import list_cpus
from kdelta.cpus.file import CPUFileError, decode_cpu
from kdelta.cpus.forced import feature_words, features
from kdelta.cpus.model import CPU
from kdelta.cpus.representative import not_taken

from .good_file import GOOD

GUESTS = Path(__file__).parent / "guests"
FORCES = [cpu for cpu in list_cpus().values() if cpu.qemu.force]


def forcing(*names: str, source: str = "man section 10") -> str:
    force = f'force = {list(names)}\nforce_source = "{source}"\n'.replace("'", '"')
    assert GOOD.count("[qemu]\n") == 1
    return GOOD.replace("[qemu]\n", f"[qemu]\n{force}")


def taken(cpu: CPU, name: str) -> tuple[str, ...]:
    """What that CPU forces and a recorded guest did not take."""
    cpuinfo, vulnerabilities = (
        (GUESTS / f"{name}.{kind}").read_text() for kind in ("cpuinfo", "vulnerabilities")
    )
    return not_taken([features()[one] for one in cpu.qemu.force], cpuinfo, vulnerabilities)


def test_hints_and_switches_are_read() -> None:
    cpu = decode_cpu(forcing("fsrm", "ibrs").encode())
    assert cpu.qemu.force == ("fsrm", "ibrs")
    assert cpu.qemu.force_source == "Somebody, Manual, document 12, section 10"


@pytest.mark.parametrize("name", ["avx512f", "pcid", "invpcid", "xsaves", "rdrand", "FSRM", ""])
def test_a_feature_with_instructions_is_refused(name: str) -> None:
    with pytest.raises(CPUFileError, match=f"`qemu.force` has '{name}', which cannot be forced"):
        decode_cpu(forcing("fsrm", name).encode())


def test_a_feature_without_a_source_is_refused() -> None:
    with pytest.raises(CPUFileError, match=r"`qemu\.force` has no source"):
        decode_cpu(forcing("fsrm", source="").encode())


@pytest.mark.parametrize(("old", "new"), [('"x86_64"', '"arm64"'), ('cpu = "qemu64,+erms"', "")])
def test_only_an_emulated_x86_is_forced(old: str, new: str) -> None:
    text = forcing("fsrm")
    assert old in text
    with pytest.raises(CPUFileError, match=r"`qemu\.force` is for x86_64 and with"):
        decode_cpu(text.replace(old, new).encode())


def test_numbers_are_those_of_the_kernels_source() -> None:
    numbers = {name: 32 * one.word + one.bit for name, one in features().items()}
    assert len(set(numbers.values())) == len(numbers)
    # arch/x86/include/asm/cpufeatures.h of 6.1 and 6.12.
    assert numbers["fsrm"] == 18 * 32 + 4
    assert numbers["msr_spec_ctrl"] == 7 * 32 + 16
    assert numbers["autoibrs"] == 20 * 32 + 8
    assert numbers["srso_user_kernel_no"] == 20 * 32 + 30
    assert (numbers["tsa_sq_no"], numbers["tsa_l1_no"]) == (21 * 32 + 11, 21 * 32 + 12)


def test_features_of_one_word_are_written_together() -> None:
    skylake = [features()[name] for name in ("spec_ctrl", "intel_stibp", "md_clear", "ssbd")]
    assert feature_words(skylake) == {18: 0x0C000400, 7: 0x00020000}
    assert feature_words([]) == {}


@pytest.mark.parametrize("cpu", FORCES, ids=lambda cpu: cpu.name)
def test_a_guest_that_took_all_has_nothing_to_say(cpu: CPU) -> None:
    assert taken(cpu, cpu.name) == ()


def test_a_guest_that_took_nothing_is_named_by_what_it_lacks() -> None:
    signs = taken(load_cpu("zen4"), "zen4-unforced")
    assert "fsrm (/proc/cpuinfo has no fsrm)" in signs
    assert "autoibrs (/proc/cpuinfo has no ibrs_enhanced)" in signs
    lost = "Vulnerable: Clear CPU buffers attempted, no microcode"
    assert f"verw_clear (tsa: {lost})" in signs
    assert any(sign.startswith("ibpb_brtype (spec_rstack_overflow: ") for sign in signs)
    assert not any("amd_" in sign for sign in signs)  # which are not shown anywhere


def test_a_mitigation_that_is_off_is_no_sign() -> None:
    cpu = load_cpu("skylake-server")
    cpuinfo = (GUESTS / "skylake-server.cpuinfo").read_text()
    said = "mds: Vulnerable; SMT Host state unknown\nspectre_v2: Vulnerable; BHI: Vulnerable\n"
    assert not_taken([features()[one] for one in cpu.qemu.force], cpuinfo, said) == ()
