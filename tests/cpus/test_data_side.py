# SPDX-License-Identifier: GPL-2.0-or-later
"""What a CPU's file says of the data side: TLBs and prices, and what of it is refused."""

import pytest

from kdelta.cpus.file import CPUFileError, decode_cpu
from kdelta.cpus.model import Cache, MissPrice
from tests.cpus.good_file import GOOD

TLBS = """
[dtlb]
entries = 96
sets = 16
ways = 6
page_bytes = 4096
source = "man"

[dtlb_large]
entries = 32
sets = 8
ways = 4
page_bytes = 2097152
source = "man"

[dtlb_store]
entries = 16
sets = 1
ways = 16
page_bytes = 4096
source = "man"

[stlb]
entries = 2048
sets = 128
ways = 16
page_bytes = 4096
source = "man"
"""
PRICES = """
[misses.l1d-store]
cycles = [0, 14]
calibrated = true
source = "man"

[misses.stlb]
cycles = [7, 40]
calibrated = false
source = "man"
"""


def test_tlbs_and_prices_of_data() -> None:
    cpu = decode_cpu((GOOD + TLBS + PRICES).encode())
    assert (cpu.dtlb, cpu.dtlb_large) == (Cache(16, 6, 4096), Cache(8, 4, 2 << 20))
    assert (cpu.dtlb_store, cpu.stlb) == (Cache(1, 16, 4096), Cache(128, 16, 4096))
    assert cpu.misses["l1d-store"] == MissPrice(0, 14, calibrated=True)
    assert cpu.misses["stlb"] == MissPrice(7, 40, calibrated=False)
    assert cpu.sources["stlb"] == cpu.sources["misses.stlb"] == "Somebody, Manual, document 12"


def test_a_cpu_need_not_log_anything_of_them() -> None:
    cpu = decode_cpu(GOOD.encode())
    assert (cpu.dtlb, cpu.dtlb_large, cpu.dtlb_store, cpu.stlb) == (None, None, None, None)


def test_all_of_them_are_lru_where_that_is_asked() -> None:
    text = GOOD + TLBS.replace("sets = 128", 'replacement = "random"\nsets = 128')
    assert decode_cpu(text.encode()).stlb == Cache(128, 16, 4096, "random")
    assert decode_cpu(text.encode()).least_recent.stlb == Cache(128, 16, 4096)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PRICES, "`misses.stlb` is the price of something that is not there"),
        (TLBS.replace("[dtlb]", "[stlb2]"), "stlb2"),
        (TLBS.partition("[dtlb_large]")[2].join(["[dtlb_large]", ""]), "no .dtlb."),
        (TLBS.replace("entries = 96", "entries = 97"), "`dtlb`: 16 sets x 6 ways are 96"),
        (TLBS.replace("page_bytes", "line_bytes", 1), "`dtlb` has a `line_bytes`"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, said: str) -> None:
    with pytest.raises(CPUFileError, match=said):
        decode_cpu((GOOD + text).encode())
