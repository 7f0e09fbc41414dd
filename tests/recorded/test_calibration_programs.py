# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/calibration keeps of real programs is in programs.md, and how it is judged."""

from pathlib import Path

import msgspec
import pytest
from calibration import Record, explained, generated_word, listing, real, real_word, repeats
from held_out_programs import (
    DRIVERS,
    PROGRAMS,
    manifest_text,
    program_text,
    right_crate,
    source_files,
)

from kdelta.infer.calibration.model import FittedPrice, ProgramFit
from kdelta.spec.errors import LabError
from kdelta.studies.calibrate.check import held_out

DOCS = Path(__file__).parents[2] / "docs/calibration"


def fit(**changed: object) -> ProgramFit:
    """A program of unpredictable flow whose links are predicted well."""
    plain = ProgramFit(
        name="one",
        flow="random",
        links=16,
        insns=2000.0,
        cycles=1000.0,
        spread=50.0,
        predicted_spread=40.0,
        noise=5.0,
        rank=0.95,
        plain_rank=0.7,
        explained=0.8,
        predictable=False,
    )
    return msgspec.structs.replace(plain, **changed)


def test_real_programs_are_judged_by_rank_where_a_clock_tells_links_apart() -> None:
    assert real_word(fit(rank=0.6)) == "reached"
    assert real_word(fit(rank=0.59)) == "missed"
    assert real_word(fit(rank=None)) == "missed"
    assert real_word(fit(rank=-1.0, noise=25.0)) == "noise"


def test_generated_programs_are_judged_by_their_flow() -> None:
    assert generated_word(fit(rank=0.9)) == "reached"
    assert generated_word(fit(rank=0.89)) == "missed"
    assert generated_word(fit(rank=0.1, noise=30.0)) == "noise"
    fixed = fit(predictable=True, rank=None, spread=2.0)
    assert generated_word(msgspec.structs.replace(fixed, predicted_spread=12.0)) == "reached"
    assert generated_word(msgspec.structs.replace(fixed, predicted_spread=12.1)) == "missed"


def test_a_price_repeats_if_each_interval_has_the_other_value() -> None:
    def price(value: float, low: float, high: float) -> dict[str, FittedPrice]:
        return {"l1i": FittedPrice("l1i", value, low, high)}

    (same,), once = repeats(price(5, 4, 6), price(5.5, 4.5, 7))
    assert same.holds
    assert once == ()
    (other,), _ = repeats(price(5, 4, 6), price(5.5, 5.2, 7))
    assert not other.holds
    assert repeats(price(5, 4, 6), {}) == ((), ("l1i",))


def test_a_table_has_a_line_a_program() -> None:
    lines = list(listing([fit(), fit(name="two", rank=None, explained=None)], generated=False))
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith("| one | 16 | 1,000 | 5.00 % | 0.50 % | 4.00 % | 0.95 |")
    assert "|  |" in lines[3]


def test_programs_are_pinned_and_have_a_driver() -> None:
    text = manifest_text(PROGRAMS)
    for program in PROGRAMS:
        assert f'{program.crate.name} = "={program.crate.version}"\n' in text
        assert len(program.crate.sha256) == 64
        assert (DRIVERS / f"{program.name}.c").is_file()
    with pytest.raises(LabError, match=r"libsqlite3-sys-0.30.1.crate has the checksum"):
        right_crate(PROGRAMS[0].crate, b"something else")


def test_a_program_is_told_as_check_reads_it(tmp_path: Path) -> None:
    (tmp_path / "program.toml").write_text(program_text(PROGRAMS[0], ["a.o", "b.o"]))
    for name in ("a.o", "b.o"):
        (tmp_path / name).touch()
    found = held_out(str(tmp_path / "program.toml"))
    assert (found.name, found.libs) == ("sqlite", ("-lm",))
    assert found.objects == (str(tmp_path / "a.o"), str(tmp_path / "b.o"))


def test_sources_are_in_one_order_and_some_are_left_out(tmp_path: Path) -> None:
    (zlib,) = (one for one in PROGRAMS if one.name == "zlib")
    for name in ("trees.c", "adler32.c", "gzlib.c", "zlib.h"):
        (tmp_path / name).touch()
    assert [file.name for file in source_files(zlib, tmp_path)] == ["adler32.c", "trees.c"]


def test_the_tables_in_the_text_are_the_recorded_figures() -> None:
    file = DOCS / "programs.json"
    if not file.is_file():
        pytest.skip("nothing is recorded yet")
    record = msgspec.json.decode(file.read_bytes(), type=Record)
    text = (DOCS / "programs.md").read_text()
    for line in listing(record.generated, generated=True):
        assert line in text
    for line in listing(real(record), generated=False):
        assert line in text


def test_the_table_of_what_explains_a_spread_is_of_the_recorded_links() -> None:
    text = (DOCS / "programs.md").read_text()
    recorded = msgspec.json.decode((DOCS / "spread.json").read_bytes())
    for line in explained(recorded):
        assert line in text
