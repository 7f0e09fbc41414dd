#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What commands recorded of system calls in five variants is what the text says.

    scripts/proofs/crossing.py

checks docs/cases/crossing, docs/crossing.md and docs/cases/README.md, which has the `kdelta
crossing` that made the documents.
"""

import re
import sys
from pathlib import Path
from typing import Any

from campaign import CASES, ROOT, failures, near
from reading import read_document

from kdelta.infer.cycles.crossing import PARTS, VARIANTS

CASE = CASES / "crossing"


def record(path: Path) -> Any:
    """Return a recorded document."""
    return read_document(path.read_bytes())


def specials(cost: Any) -> dict[str, float]:
    """Return the special instructions of a variant."""
    return {k: n for k, n in cost.amounts.items() if k not in {"insns", "string_bytes"}}


def getppid() -> Any:
    """Return the operation of the first record."""
    (one,) = record(CASE / "getppid.json").found.operations
    return one


def check_all_variants_are_there_and_shares_add_up() -> None:
    """Check each document."""
    for path in sorted(CASE.glob("*.json")):
        found = record(path)
        assert [arm.name for arm in found.variants] == list(VARIANTS)
        for one in (*found.found.operations, found.found.total):
            assert one.whole is not None
            assert [part for share in one.shares for part in share.parts] == list(PARTS)
            for figure in ("insns", "user", "kernel"):
                parts = sum(getattr(share, figure) for share in one.shares)
                assert near(parts, getattr(one.whole, figure), by=1e-6)
            for arm in one.variants:
                assert near(arm.user.value + arm.kernel.value, arm.insns.value, rel=1e-6)


def check_getppid_is_exact_and_goes_the_way_that_each_variant_has() -> None:
    """Check special instructions."""
    one = getppid()
    ways = {arm.name: specials(arm) for arm in one.variants}
    assert all(arm.insns.low == arm.insns.high and arm.insns.n > 1 for arm in one.variants)
    assert ways["stock"] == {"cli-sti": 2, "swapgs": 2, "syscall": 1, "sysret": 1}
    assert ways["kernel"] == {"cli-sti": 2, "iret": 1, "swapgs": 2, "syscall": 1}
    assert ways["kernel-direct"] == {"cli-sti": 3, "iret": 1, "swapgs": 2}
    assert ways["kernel-skip"] == {"cli-sti": 4, "swapgs": 2}


def check_most_operations_gain_the_same_for_each_call() -> None:
    """Check all operations."""
    found = record(CASE / "syscalls.json").found
    assert len(found.operations) == 44
    each = {}
    for one in found.operations:
        assert one.whole is not None
        if calls := one.variants[0].amounts.get("syscall", 0):
            each[one.name] = one.whole.insns / calls
    plain = [name for name, insns in each.items() if 111 <= insns < 126]
    assert len(plain) == 28
    assert {"getppid", "open-close", "write-null-1b", "poll-1000"} <= set(plain)
    for arm in found.total.variants[2:]:
        assert "sysret" not in arm.amounts


def check_a_database_gains_its_calls_entry_work() -> None:
    """Check the queries on SQLite."""
    (total,) = record(CASE / "wisconsin.json").found.operations
    assert total.whole is not None
    stock, skip = total.variants[0], total.variants[-1]
    assert (stock.insns.value, skip.insns.value) == (643_774_291, 642_296_487)
    assert round(100 * total.whole.insns / stock.insns.value, 1) == 0.2
    assert round(100 * total.whole.kernel / stock.kernel.value, 1) == 10.1
    calls = stock.amounts["syscall"]
    assert (calls, round(total.whole.insns / calls)) == (12_823, 115)
    assert "syscall" not in skip.amounts
    assert "syscall" not in total.variants[-2].amounts


def check_what_getppid_gains_is_the_entry_work() -> None:
    """Check what the kernel executes, and the shares."""
    arms = {arm.name: arm for arm in getppid().variants}
    system = {name: arm.kernel.value for name, arm in arms.items()}
    assert system == {
        "stock": 199,
        "mitigations-off": 199,
        "kernel": 195,
        "kernel-direct": 195,
        "kernel-skip": 80,
    }
    # 43 of these are getppid itself, in every variant: what is left is the way in and out.
    own = 43
    assert (system["stock"] - own, system["kernel-skip"] - own) == (156, 37)
    by_part = {share.parts[0]: share.insns for share in getppid().shares}
    assert by_part == {"mitigations": 0, "crossing": 4, "direct call": -4, "entry work": 117}


PARTS_OF = {
    "entry_SYSCALL_64_after_hwframe": "entry_SYSCALL_64",
    "kernel_mode_call_return": "kernel_mode_call",
    "arch_exit_to_user_mode_prepare.constprop.0": "arch_exit_to_user_mode_prepare",
    "[unknown]": "syscall",
}
"""As what the text counts a function; the one without a name is the stub."""


def profile(name: str) -> dict[str, int]:
    """Return instructions a call by function, of the first table of a profile of 500 calls."""
    table = (CASE / name).read_text().partition(" 100.0% ")[0]
    lines = re.findall(r"^ +(\d+) +[\d.]+% +\S+  (\S+)", table, re.MULTILINE)
    found: dict[str, int] = {}
    for insns, function in lines:
        name = PARTS_OF.get(function, function)
        found[name] = found.get(name, 0) + round(int(insns) / 500)
    return found


def check_the_table_of_functions_has_what_the_profiles_have() -> None:
    """Check docs/crossing.md."""
    text = (ROOT / "docs/crossing.md").read_text()
    table, _, last = text.partition("## Where getppid")[2].partition("| all |")
    rows = re.findall(r"^\| (`.*`) \| *(\d*) *\| *(\d*) *\|", table, re.MULTILINE)
    for column, name, arm in ((0, "stock", 0), (1, "skip", -1)):
        found = profile(f"getppid-{name}.txt")
        whole = sum(found.values())
        for names, *figures in rows:
            insns = sum(found.pop(one, 0) for one in re.findall(r"`([_\w]+)`", names))
            assert insns == int(figures[column] or 0), names
        assert not found
        assert whole == int(last.split("|")[column]) == round(getppid().variants[arm].insns.value)


def check_software_mitigations_make_it_seventy_percent() -> None:
    """Check the kernel with the series, and isolation's share from the stock one."""
    found = {
        name: sum(profile(f"getppid-{name}.txt").values())
        for name in ("stock", "isolation", "mitigations", "mitigations-skip")
    }
    assert found == {"stock": 222, "isolation": 232, "mitigations": 347, "mitigations-skip": 105}
    assert profile("getppid-mitigations.txt")["clear_bhb_loop"] == 109
    patched = 221
    whole = found["mitigations"] + found["isolation"] - patched
    assert (whole, round(100 * (1 - 105 / whole), 1), round(100 * (1 - 105 / 347), 1)) == (
        358,
        70.7,
        69.7,
    )
    text = " ".join((CASE.parent / "README.md").read_text().split())
    assert "**347** instructions" in text
    assert "So 358 for a stock kernel with all of it, of which 105 are **70.7 % less**" in text


if __name__ == "__main__":
    sys.exit(failures(sys.modules[__name__]))
