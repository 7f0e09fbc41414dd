# SPDX-License-Identifier: GPL-2.0-or-later
"""What a CPU's file says of its front end and of a calibration, and what of it is refused."""

import pytest

from kdelta.cpus.file import CPUFileError, counts_of_front_end, decode_cpu
from kdelta.cpus.model import Cache, Calibration, MissPrice
from tests.cpus.good_file import GOOD
from tests.cpus.whole_file import CALIBRATION, DECOUPLED, TABLES, WHOLE


def test_a_front_end() -> None:
    cpu = decode_cpu(WHOLE.encode())
    ahead = cpu.front_end
    assert ahead is not None
    assert ahead.conditional is not None
    assert ahead.conditional.histories == (4, 8, 16, 32)
    assert ahead.btb == (Cache(256, 2, 1), Cache(1024, 4, 1))
    assert cpu.btb == ahead.btb[0]
    assert ahead.op_cache == Cache(64, 8, 64)
    assert ahead.run_ahead is not None
    assert (ahead.run_ahead.windows, ahead.miss_cycles, ahead.cycles_per_insn) == (12, 14, 0.5)
    assert cpu.misses["conditional"] == MissPrice(12, 20, True)
    assert cpu.sources["returns"] == "Somebody, Manual, document 12, section 10"


def test_it_may_deliver_faster_than_the_base_rate() -> None:
    own = WHOLE.replace("miss_cycles = 14", "miss_cycles = 14\ncycles_per_insn = 0.25")
    cpu = decode_cpu(own.encode())
    assert cpu.front_end is not None
    assert (cpu.cycles_per_insn, cpu.front_end.cycles_per_insn) == (0.5, 0.25)


def test_windows_may_have_a_pace_of_their_own() -> None:
    known = decode_cpu(WHOLE.encode())
    assert known.front_end is not None
    assert known.front_end.run_ahead is not None
    assert known.front_end.run_ahead.delivery_cycles == 0
    assert not counts_of_front_end(known)["fetch-waits"]
    paced = TABLES.replace("miss_cycles = 14", "miss_cycles = 14\ndelivery_cycles = 1.5")
    cpu = decode_cpu((DECOUPLED + paced).encode())
    assert cpu.front_end is not None
    assert cpu.front_end.run_ahead is not None
    assert cpu.front_end.run_ahead.delivery_cycles == 1.5
    assert counts_of_front_end(cpu)["fetch-waits"]
    coupled = (GOOD + paced.replace("ahead_windows = 12\n", "")).encode()
    with pytest.raises(CPUFileError, match=r"`fetch\.delivery_cycles` means nothing where"):
        decode_cpu(coupled)


def test_a_coupled_one_waits_for_its_branches() -> None:
    ahead = decode_cpu((GOOD + TABLES.replace("ahead_windows = 12\n", "")).encode()).front_end
    assert ahead is not None
    assert ahead.run_ahead is None


def test_without_tables_nothing_is_known() -> None:
    assert decode_cpu(GOOD.encode()).front_end is None
    assert decode_cpu(GOOD.encode()).calibration is None


def test_a_btb_that_is_assumed_is_the_front_ends_alone() -> None:
    text = WHOLE.replace('source = "man section 5"', 'source = "assumed: as others"')
    cpu = decode_cpu(text.encode())
    assert cpu.btb is None
    assert cpu.front_end is not None
    assert cpu.front_end.btb[0] == Cache(256, 2, 1)


def test_a_calibration() -> None:
    assert decode_cpu(WHOLE.encode()).calibration == Calibration(
        "2026-11-22T04:30:00+00:00", "A core of 3.0 GHz", 12, 30, (0.8, 0.93), "kdelta 0.9"
    )


def test_by_lru_the_front_end_evicts_the_oldest_too() -> None:
    text = WHOLE.replace("ways = 2\nsource", 'ways = 2\nreplacement = "random"\nsource')
    cpu = decode_cpu(text.encode())
    assert cpu.front_end is not None
    assert cpu.front_end.btb[0].replacement == "random"
    besides = cpu.least_recent.front_end
    assert besides is not None
    assert besides.btb[0] == Cache(256, 2, 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("histories = [4, 8, 16, 32]", "histories = [8, 4]", r"`predictor\.histories`"),
        ("base_entries = 4096", "base_entries = 4000", r"`predictor\.base_entries` is 4000"),
        ("base_entries = 4096", "entrys = 4096", r"\$\.predictor"),
        ("miss_cycles = 14", "miss_cycles = -1", r"`fetch\.miss_cycles` is -1"),
        (
            "miss_cycles = 14",
            "miss_cycles = 14\ncycles_per_insn = 0",
            r"`fetch\.cycles_per_insn` is 0",
        ),
        ("ahead_windows = 12\n", "", r"`fetch\.ahead_windows` is None"),
        ("entries = 4096\nsets = 1024", "entries = 4095\nsets = 1024", r"`btb_second`: 1024 sets"),
        ('source = "man section 10"', 'source = "somewhere"', r"`returns`: its source"),
        ("[misses.conditional]", "[misses.prediction]", "prediction"),
        ('when = "2026-11-22T04:30:00+00:00"', 'when = "lately"', r"`calibration\.when` is 'lat"),
        ('host = "A core of 3.0 GHz"', 'host = ""', r"`calibration\.host` is empty"),
        ("[0.8, 0.93]", "[0.93, 0.8]", r"`calibration\.rank_correlation` is \[0\.93, 0\.8\]"),
        ("[0.8, 0.93]", "[0.8, 1.1]", r"`calibration\.rank_correlation`"),
        ("[0.8, 0.93]", "[nan, nan]", r"`calibration\.rank_correlation`"),
        ("programs = 12", "programs = 0", "by no program"),
        ('by = "kdelta 0.9"\n', "", r"missing required field `by`.*\$\.calibration"),
    ],
)
def test_a_wrong_one_names_the_field(old: str, new: str, said: str) -> None:
    assert WHOLE.count(old) == 1
    with pytest.raises(CPUFileError, match=said):
        decode_cpu(WHOLE.replace(old, new).encode())


@pytest.mark.parametrize("kind", ["conditional", "l1i-exposed"])
def test_a_price_of_what_no_front_end_has_is_refused(kind: str) -> None:
    price = f"[misses.{kind}]\ncycles = [1, 2]\ncalibrated = false\nsource = 'assumed: so'\n"
    with pytest.raises(CPUFileError, match=f"`misses.{kind}` is the price of something that is no"):
        decode_cpu((GOOD + price).encode())


def test_a_calibration_of_nothing() -> None:
    text = (DECOUPLED + CALIBRATION).replace("calibrated = true", "calibrated = false")
    with pytest.raises(CPUFileError, match="no price of a miss is `calibrated`"):
        decode_cpu(text.encode())
