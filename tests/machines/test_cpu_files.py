# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that look like CPUs of the catalogue, with real kernels."""

import functools

import pytest

from kdelta.cpus import load_cpu
from kdelta.cpus.representative import paths_not_taken
from kdelta.infer.effects.same import partings
from kdelta.machines.outcome import GuestOutcome
from tests.machines.bench import ARM64, NEW, counts_of, made_as, run_job, syscalls_job

KERNELS = {"x86_64": NEW, "arm64": ARM64}


@functools.cache
def outcomes(name: str) -> list[GuestOutcome]:
    """Two runs of getppid in a guest that looks like this CPU."""
    cpu = load_cpu(name)
    where = made_as(name, KERNELS[cpu.arch])
    return [run_job(syscalls_job("--clock", "getppid"), where) for _ in range(2)]


CPUS = ["zen5", "neoverse-v2", "granite-rapids", "sierra-forest", "cortex-a55", "cortex-a76"]


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize("name", CPUS)
def test_guest_like_a_cpu_repeats_to_the_last_instruction(name: str) -> None:
    first, second = (counts_of(one, arch=load_cpu(name).arch) for one in outcomes(name))
    assert list(partings(first, second)) == []
    assert first.regions


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize("name", CPUS)
def test_guest_like_a_cpu_differs_in_what_qemu_lacks_alone(name: str) -> None:
    messages = outcomes(name)[0].messages
    info, said = (messages[one].decode() for one in ("cpuinfo", "vulnerabilities"))
    found = paths_not_taken(load_cpu(name), info, said)
    assert [one.text for one in found if not one.path.not_emulated] == []
