# SPDX-License-Identifier: GPL-2.0-or-later
"""Versions in the order that dpkg has them in."""

import itertools
import random
import shutil
import subprocess

import pytest

from kdelta.spec.versions import compare_versions, version_key

IN_ORDER = [
    "5.10.0",
    "6.1~rc7-1",
    "6.1",
    "6.1.0-9-cloud-amd64",
    "6.1.0-56-cloud-amd64",
    "6.1.176-1",
    "6.1.192-1",
    "6.1.192-2",
    "6.12~rc3",
    "6.12",
    "6.12.9-1",
    "6.12.57+deb13-cloud-amd64",
    "6.12.117-1~deb12u1",
    "6.12.117-1",
    "1:2.0",
]


def test_kernels_in_order() -> None:
    shuffled = IN_ORDER[:]
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=version_key) == IN_ORDER


def test_what_is_written_otherwise_may_be_equal() -> None:
    assert compare_versions("6.01", "6.1") == 0
    assert compare_versions("0:6.1", "6.1") == 0
    assert compare_versions("a:1", "a:2") < 0


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="no dpkg here")
def test_dpkg_says_the_same() -> None:
    some = random.Random(2)
    made = [
        str(some.randint(0, 9)) + "".join(some.choices("0123.~+-ab", k=some.randint(0, 6)))
        for _ in range(12)
    ]
    checked = 0
    for a, b in itertools.combinations([*IN_ORDER[:6], *made], 2):
        words = {-1: "lt", 0: "eq", 1: "gt"}
        found = compare_versions(a, b)
        sign = (found > 0) - (found < 0)
        said = subprocess.run(["dpkg", "--compare-versions", a, words[sign], b], check=False)
        assert said.returncode in (0, 2), (a, words[sign], b)
        checked += said.returncode == 0  # and 2 for what dpkg takes for no version
    assert checked > 50
