# SPDX-License-Identifier: GPL-2.0-or-later
"""Warnings of boot parameters depend on what they changed, not on their names."""

import msgspec
import pytest

from kdelta.counts.model import Cost, RunCounts
from kdelta.infer.effects.effects import Effects, compare
from kdelta.studies.compare.parameters import warnings_on_parameters
from tests.synthetic import own, region, run

K = "deb:linux-image-6.12-cloud-amd64=6.12.117-1"
NOKMEM = f"{K} +cmdline:cgroup.memory=nokmem"
DOUBT = "other: cgroup.memory=nokmem may be without effect on 6.12.117: kernels do not report it"
CPU = (
    "flags\t: fpu ssbd\ncpu MHz\t\t: 999.993\nbogomips\t: 1999.98\nspec_store_bypass: Vulnerable\n"
)


def effects(functions: list[dict[str, int]], *warnings: str) -> Effects:
    base = counts([{"open": 100, "alloc": 40}] * len(functions))
    return msgspec.structs.replace(compare(base, counts(functions)), warnings=warnings)


def counts(runs: list[dict[str, int]]) -> list[RunCounts]:
    return [
        run(region("op", {own(name): Cost(100 * insns) for name, insns in one.items()}, 100))
        for one in runs
    ]


SAME = effects([{"open": 100, "alloc": 40}] * 4, DOUBT, "base: slow")
LESS = effects([{"open": 100}] * 4, DOUBT, "base: slow")
BALANCED = effects([{"open": 120, "alloc": 20}] * 4, DOUBT)
NOISE = effects([{"open": 100, "alloc": 40 + at % 2} for at in range(4)], DOUBT)


@pytest.mark.parametrize("found", [LESS, BALANCED])
def test_a_parameter_that_changes_a_path_is_not_doubted(found: Effects) -> None:
    kept = [text for text in found.warnings if text != DOUBT]
    assert list(warnings_on_parameters((K, NOKMEM), found, (CPU, CPU))) == kept


def test_a_parameter_that_changes_what_the_guest_shows_is_not_doubted() -> None:
    other = CPU.replace("Vulnerable", "Mitigation: disabled")
    first, second = warnings_on_parameters((K, NOKMEM), SAME, (CPU, other))
    assert first == "base: slow"
    assert second == (
        "cgroup.memory=nokmem: the guests show spec_store_bypass as 'Mitigation: disabled' with it "
        "and 'Vulnerable' without. What the CPU itself does otherwise for that is in no figure"
    )


def test_what_only_one_guest_shows_is_named() -> None:
    other = CPU.replace("fpu ssbd", "fpu smep") + "tsa: Vulnerable\n"
    text = warnings_on_parameters((K, NOKMEM), LESS, (CPU, other))[-1]
    assert "the guests show flags with +smep -ssbd; tsa as 'Vulnerable' with it and ''" in text


@pytest.mark.parametrize("found", [SAME, NOISE])
def test_where_nothing_differs_a_warning_replaces_the_doubt(found: Effects) -> None:
    *_, text = warnings_on_parameters((K, NOKMEM), found, (CPU, CPU.replace("999.993", "999.989")))
    assert text.startswith("cgroup.memory=nokmem: nothing that was looked at differs, ")
    assert not [one for one in warnings_on_parameters((K, NOKMEM), found, (CPU, CPU))
                if "may be without effect" in one]  # fmt: skip


@pytest.mark.parametrize(
    "specs",
    [(K, K), ("./linux", "./linux +fix.patch +cmdline:a"), (K, NOKMEM.replace("6.12", "6.1", 1))],
)
def test_kernels_that_differ_in_something_else_keep_their_warnings(specs: tuple[str, str]) -> None:
    assert warnings_on_parameters(specs, SAME, (CPU, CPU)) == SAME.warnings
