# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a CPU is chosen behind its name."""

import pytest

from kdelta.cpus import load_cpu
from kdelta.cpus.model import MissPrice
from kdelta.spec.errors import UserError

A9 = load_cpu("cortex-a9")


@pytest.mark.parametrize(
    ("size", "sets"), [("256KiB", 1024), ("262144", 1024), ("256k", 1024), ("1 MiB", 4096)]
)
def test_the_size_of_an_l2(size: str, sets: int) -> None:
    cpu = load_cpu(f"cortex-a9,l2={size}")
    assert (cpu.l2.sets, cpu.l2.ways, cpu.l2.line_bytes) == (sets, A9.l2.ways, A9.l2.line_bytes)
    assert cpu.l2.replacement == "round-robin"
    assert cpu.l1i == A9.l1i
    assert cpu.name == f"cortex-a9,l2={size}"
    assert cpu.sources["l2"] == f"chosen: {size}"


def test_the_size_of_an_l1_is_its_own() -> None:
    assert load_cpu("cortex-a9,l1i=16KiB").l1i.bytes == 16 << 10
    assert load_cpu("cortex-a9,l1i=16KiB").l1d == A9.l1d


def test_a_policy_is_that_of_all_that_share_the_bit() -> None:
    zen = load_cpu("zen2,replacement=round-robin")
    assert zen.itlb_small is not None
    for cache in (zen.l1i, zen.itlb, zen.itlb_small):
        assert cache.replacement == "round-robin"
    assert (zen.l1d.replacement, zen.l2.replacement) == ("lru", "lru")
    cpu = load_cpu("cortex-a9,replacement=round-robin")
    assert (cpu.l1i.replacement, cpu.itlb.replacement) == ("round-robin", "lru")
    assert (cpu.l1d.replacement, cpu.l2.replacement) == ("random", "round-robin")
    a53 = load_cpu("cortex-a53,replacement=round-robin")
    assert (a53.l1i.replacement, a53.itlb.replacement) == ("round-robin", "lru")


def test_latency_and_clock() -> None:
    cpu = load_cpu("cortex-a9,l2-latency=25,clock=1.4GHz")
    price, known = cpu.misses["l1i"], A9.misses["l1i"]
    assert price.exposed == 25
    assert price.exposed - price.hidden == known.exposed - known.hidden
    assert cpu.misses["l2"] == A9.misses["l2"]
    assert cpu.clock_mhz == 1400
    assert load_cpu("cortex-a9,l2-latency=2").misses["l1i"].hidden == 0
    assert load_cpu("cortex-a9,clock=667 mhz").clock_mhz == 667


def test_options_are_of_the_users_own_files_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("cpus") / "mine.toml"
    path.write_text('name = ""')
    with pytest.raises(UserError, match=r"mine\.toml"):
        load_cpu(f"{path},l2=256KiB")


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("cortex-a9,l2=300KiB", "cortex-a9 has no l2 of 300KiB", "128KiB, 256KiB, 512KiB, 1024KiB"),
        ("cortex-a9,l2=", "has no l2 of ", "256KiB"),
        ("zen2,l2=1MiB", "zen2 has no l2 of 1MiB", "no matter of choice"),
        ("cortex-a9,l3=1MiB", "'l3=1MiB' is no option", "l2-latency=..."),
        ("cortex-a9,l2", "'l2' is no option", "l2=..."),
        ("cortex-a9,clock=fast", "'fast' is no clock", "800MHz"),
        ("cortex-a9,clock=0MHz", "'0MHz' is no clock", "800MHz"),
        ("cortex-a9,replacement=plru", "no replacement is called 'plru'", "round-robin"),
        ("cortex-a9,l2-latency=-1", "l2-latency=-1 is no number of cycles", "positive"),
        ("cortex-a9,l2-latency=nan", "l2-latency=nan is no number of cycles", "positive"),
        ("cortex-a8,l2=256KiB", "no CPU is called 'cortex-a8'", "cortex-a9"),
    ],
)
def test_what_there_is_not(name: str, what: str, hint: str) -> None:
    with pytest.raises(UserError, match=what) as raised:
        load_cpu(name)
    assert hint in raised.value.hint


def test_lru_besides_it() -> None:
    cpu = A9.least_recent
    assert cpu.btb is not None
    assert {cache.replacement for cache in (A9.l1i, A9.l1d, A9.l2)} == {"random", "round-robin"}
    policies = {cache.replacement for cache in (cpu.l1i, cpu.l1d, cpu.l2, cpu.itlb, cpu.btb)}
    assert policies == {"lru"}
    zen = load_cpu("zen3")
    assert zen.least_recent == zen


def test_latency_of_decoupled_front_end_may_be_hidden_whole() -> None:
    assert load_cpu("zen4,l2-latency=30").misses["l1i"] == MissPrice(0, 30, calibrated=False)


@pytest.mark.parametrize("name", ["zen4", "skylake-server"])
def test_a_guest_on_a_cpu_is_the_same_but_for_the_hypervisor(name: str) -> None:
    bare, guest = load_cpu(name), load_cpu(f"{name}:guest")
    assert guest.name == f"{name}:guest"
    assert guest.title == bare.title
    assert "-hypervisor" in bare.qemu.cpu.split(",")
    assert guest.qemu.cpu.split(",") == [
        word for word in bare.qemu.cpu.split(",") if word != "-hypervisor"
    ]
    assert guest.qemu.force == bare.qemu.force
    assert guest.misses == bare.misses


def test_a_guest_is_refused_of_a_cpu_that_has_one_path_alone() -> None:
    for name in ("cortex-a53", "generic-x86-64"):
        with pytest.raises(UserError, match=f"{name} has no paths of a guest"):
            load_cpu(f"{name}:guest")
    with pytest.raises(UserError, match="no CPU is called 'zen9'"):
        load_cpu("zen9:guest")
