# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/kernel-mode keeps holds what docs/kernel-mode-proofs.md says."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
TEXT = " ".join((DOCS / "kernel-mode-proofs.md").read_text().split())


def record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "cases/kernel-mode" / f"{name}.json").read_text())
    return found


def test_stress_ng_ended_well_on_one_cpu_and_on_two() -> None:
    found = record("stress")
    rows = found["rows"]
    assert found["oopses"] == []
    assert {row["how"] for row in rows} == {"exit-0"}
    kinds = {"cpu", "vm", "fork", "signal", "timer", "pthread"}
    for cpus, nmis in ((1, 0), (2, 0), (2, 20)):
        there = {r["kind"] for r in rows if (r["cpus"], r["nmis_a_second"]) == (cpus, nmis)}
        assert there == kinds
    told = re.search(r"far ([\d.]+) of .* (\d+) loads .*, ?\n?(\d+) of them on two CPUs", TEXT)
    assert told is not None
    on_two = sum(row["cpus"] == 2 for row in rows)
    minutes = round(found["cpu_seconds"] / 60, 1)
    assert told.groups() == (str(minutes), str(len(rows)), str(on_two))


def test_selftests_that_do_not_end_the_same_are_explained() -> None:
    rows = record("selftests")["rows"]
    same: Counter[str] = Counter()
    for row in rows:
        user, kernel = row["ended"]["user"], row["ended"]["kernel"]
        if user == kernel:
            same["well" if user in ("pass", "skip") else "ill"] += 1
        if user != kernel or row["differences"] or user not in ("pass", "skip"):
            assert re.search(rf"{row['test']}\b", TEXT), row
    assert f"{len(rows) - same.total()} do not end the same" in TEXT
    told = re.search(r"(\d+) pass in both modes, (\d+) are skipped in both, and (\d+) fail", TEXT)
    assert told is not None
    assert f"{len(rows)} programs of `tools/testing/selftests`" in TEXT
    passed, skipped, failed = map(int, told.groups())
    assert (passed + skipped, failed) == (same["well"], same["ill"])


def test_what_the_kernel_complained_of_is_explained() -> None:
    """In user mode and in kernel mode; the stock kernel's end is QEMU's."""
    oopses = record("selftests")["oopses"]
    assert oopses["user"] == []
    for line in oopses["kernel"]:
        place = re.search(r" (\w+)\+0x", line)
        assert place is not None
        assert f"`{place.group(1)}`" in TEXT


def test_what_the_c_librarys_tests_found_is_told() -> None:
    found = record("glibc")
    assert not any(found["oopses"].values())
    counts = {
        mode: Counter(row["ended"][mode] for row in found["rows"]) for mode in found["counts"]
    }
    assert counts == found["counts"]
    for mode, word in (
        ("user", "user mode"),
        ("kernel", "`syscall`"),
        ("kernel-skip", "entry work"),
    ):
        told = [counts[mode][how] for how in ("pass", "fail", "unsupported")]
        assert f"{word} | {' | '.join(map(str, told))} |" in TEXT
        assert sum(told) == len(found["rows"])
    tried = len(found["rows"])
    assert f"{tried} of the {tried + found['uncompiled']} tests" in TEXT
    unlike = [row["test"] for row in found["rows"] if len(set(row["ended"].values())) > 1]
    for name in (*unlike, *found["left_out"]):
        assert name in TEXT
    for row in found["rows"]:
        if row["ended"]["user"] == "fail":
            assert row["test"].partition("tst-")[2] in TEXT, row
