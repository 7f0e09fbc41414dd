# SPDX-License-Identifier: GPL-2.0-or-later
"""Warnings of boot parameters depend on what they changed, not on their names."""

import msgspec
import pytest

from kdelta.counts.model import Cost, RunCounts
from kdelta.infer.effects.effects import Effects, compare_runs
from kdelta.studies.compare.parameters import GuestWords, warnings_on_parameters
from tests.synthetic import own, region, run

K = "deb:linux-image-6.12-cloud-amd64=6.12.117-1"
NOKMEM = f"{K} +cmdline:cgroup.memory=nokmem"
DOUBT = "other: cgroup.memory=nokmem may be without effect on 6.12.117: kernels do not report it"
CPU = (
    "flags\t: fpu ssbd\ncpu MHz\t\t: 999.993\nbogomips\t: 1999.98\nspec_store_bypass: Vulnerable\n"
)


def effects(functions: list[dict[str, int]], *warnings: str) -> Effects:
    base = counts([{"open": 100, "alloc": 40}] * len(functions))
    return msgspec.structs.replace(compare_runs(base, counts(functions)), warnings=warnings)


def counts(runs: list[dict[str, int]]) -> list[RunCounts]:
    return [
        run(region("op", {own(name): Cost(100 * insns) for name, insns in one.items()}, 100))
        for one in runs
    ]


BOOTED = GuestWords(CPU)
LOG = """\
<6>[    0.000000] Command line: console=ttyS0 {words}
<6>[    0.000000] LSM: initializing lsm=lockdown,apparmor
<6>[    0.080000] Memory: {size}K/1048056K available (20480K kernel code, 0x{size} reserved)
<6>[    0.100000] {ssb}
<5>[    0.300000] Unknown kernel command line parameters "{words}", will be passed to user space.
"""
SSB = "Speculative Store Bypass: Mitigation: disabled"
WITHOUT = LOG.format(words="nokaslr", size=1234, ssb=f"{SSB} via prctl")
WITH = LOG.format(words="nokaslr cgroup.memory=nokmem", size=99, ssb=SSB)
WITH += "<7>[    0.400000]     cgroup.memory=nokmem\n"


def logged(*logs: str) -> GuestWords:
    return GuestWords(CPU, logs)


def on_parameters(
    found: Effects, base: GuestWords, other: GuestWords, specs: tuple[str, str] = (K, NOKMEM)
) -> list[str]:
    return list(warnings_on_parameters(specs, found, (base, other)))


SAME = effects([{"open": 100, "alloc": 40}] * 4, DOUBT, "base: slow")
LESS = effects([{"open": 100}] * 4, DOUBT, "base: slow")
BALANCED = effects([{"open": 120, "alloc": 20}] * 4, DOUBT)
NOISE = effects([{"open": 100, "alloc": 40 + at % 2} for at in range(4)], DOUBT)


@pytest.mark.parametrize("found", [LESS, BALANCED])
def test_a_parameter_that_changes_a_path_is_not_doubted(found: Effects) -> None:
    kept = [text for text in found.warnings if text != DOUBT]
    assert on_parameters(found, BOOTED, BOOTED) == kept


def test_a_parameter_that_changes_what_the_guest_shows_is_not_doubted() -> None:
    other = GuestWords(CPU.replace("Vulnerable", "Mitigation: disabled"))
    first, second = on_parameters(SAME, BOOTED, other)
    assert first == "base: slow"
    assert second == (
        "cgroup.memory=nokmem: the guests show spec_store_bypass as 'Mitigation: disabled' with it "
        "and 'Vulnerable' without. What the CPU itself does otherwise for that is in no figure"
    )


def test_of_several_parameters_that_change_something_any_may_be_without_effect() -> None:
    other = GuestWords(CPU.replace("Vulnerable", "Mitigation: disabled"))
    assert DOUBT in on_parameters(LESS, BOOTED, other, (K, f"{NOKMEM} +cmdline:nosmt"))
    values = (f"{K} +cmdline:cgroup.memory=nosocket", NOKMEM)
    assert DOUBT not in on_parameters(LESS, BOOTED, other, values)


def test_what_only_one_guest_shows_is_named() -> None:
    other = GuestWords(CPU.replace("fpu ssbd", "fpu smep") + "tsa: Vulnerable\n")
    text = on_parameters(LESS, BOOTED, other)[-1]
    assert "guests show +smep -ssbd in flags with it; tsa as 'Vulnerable' with it and ''" in text


@pytest.mark.parametrize("found", [SAME, NOISE])
def test_where_nothing_differs_a_warning_replaces_the_doubt(found: Effects) -> None:
    *_, text = on_parameters(found, BOOTED, GuestWords(CPU.replace("999.993", "999.989")))
    assert text.startswith("cgroup.memory=nokmem: nothing that was looked at differs, ")
    assert "mitigations. It may" in text  # what was logged is not known
    assert not [one for one in on_parameters(found, BOOTED, BOOTED)
                if "may be without effect" in one]  # fmt: skip


def test_where_only_messages_of_the_boot_differ_they_alone_are_named() -> None:
    text = on_parameters(SAME, logged(WITHOUT), logged(WITH))[-1]
    assert text == (
        f"cgroup.memory=nokmem: as they boot, the kernels log '{SSB}' with it and "
        f"'{SSB} via prctl' without. No executed function differs, nor does what the guests show "
        "of their CPU and mitigations. That it costs nothing elsewhere is not shown"
    )
    with_cpu = GuestWords(CPU.replace("ssbd", "smep"), (WITH,))
    text = on_parameters(SAME, logged(WITHOUT), with_cpu)[-1]
    assert text.endswith(
        f"in no figure. As they boot, the kernels log '{SSB}' with it and '{SSB} via prctl' without"
    )
    shown = GuestWords(CPU.replace("Vulnerable", "Mitigation: disabled"), (WITH,))
    text = on_parameters(SAME, logged(WITHOUT), shown)[-1]
    assert text.endswith(f"As they boot, the kernels log '{SSB} via prctl' without")
    text = on_parameters(LESS, logged(WITHOUT), logged(WITH))[-1]
    assert text.endswith(f"with it and '{SSB} via prctl' without")


@pytest.mark.parametrize("printed", ["<6>{}", "<6>[    0.5][    T0] {}", "<6>[    0.5] [   C1] {}"])
def test_messages_that_differ_in_figures_or_repeat_the_command_line_are_the_same(
    printed: str,
) -> None:
    other = WITH.replace(SSB, f"{SSB} via prctl")
    assert other != WITHOUT
    stamped = WITHOUT + printed.format("mapped 12 pages")
    text = on_parameters(SAME, logged(stamped), logged(f"{other}<6>[    0.7] mapped 3 pages"))[-1]
    assert "nothing that was looked at differs, " in text
    assert "mitigations nor what the kernels log as they boot. It may" in text


def test_what_a_kernel_logs_in_some_boots_alone_is_no_effect() -> None:
    late = f"{WITHOUT}<6>[    0.9] clocksource: watchdog is late\n"
    for base, other in ((logged(WITHOUT, late), WITHOUT), (logged(WITHOUT), late)):
        text = on_parameters(SAME, base, logged(other, WITHOUT))[-1]
        assert "nothing that was looked at differs, " in text


def test_of_many_messages_those_that_name_the_parameter_come_first() -> None:
    more = "".join(f"<6>[    1.0] line {name}\n" for name in ("one", "memory cgroup", "two"))
    text = on_parameters(SAME, logged(WITHOUT), logged(WITHOUT + more))[-1]
    assert "log 'line memory cgroup' and 'line one' with it; 1 more on one side only. No" in text


def test_a_base_with_the_parameter_and_two_values_of_it_are_called_so() -> None:
    text = on_parameters(SAME, logged(WITH), logged(WITHOUT), (NOKMEM, K))[-1]
    assert f"log '{SSB} via prctl' without and '{SSB}' with it. No" in text
    both = (f"{K} +cmdline:cgroup.memory=nokmem", f"{K} +cmdline:a=2")
    text = on_parameters(SAME, logged(WITH), logged(WITHOUT), both)[-1]
    assert f"log '{SSB} via prctl' with a=2 and '{SSB}' with cgroup.memory=nokmem. No" in text


@pytest.mark.parametrize(
    "specs",
    [(K, K), ("./linux", "./linux +fix.patch +cmdline:a"), (K, NOKMEM.replace("6.12", "6.1", 1))],
)
def test_kernels_that_differ_in_something_else_keep_their_warnings(specs: tuple[str, str]) -> None:
    assert tuple(on_parameters(SAME, logged(WITHOUT), logged(WITH), specs)) == SAME.warnings
