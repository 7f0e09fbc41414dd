# SPDX-License-Identifier: GPL-2.0-or-later
"""Units of a diff: found on small Kconfig files, and by properties on random ones."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernels.config.kconfig import explain_diff
from kdelta.kernels.config.kconfig_files import Kconfig
from kdelta.kernels.config.option_groups import (
    OptionGroup,
    closed,
    find_units,
    flipped,
    flipped_units,
)
from kdelta.spec.errors import LabError
from tests.kernels.fake_conf import FakeConf, FakeOption, Term

DEBUG: tuple[Term, ...] = ((("DEBUG", True),),)
TRACE: tuple[Term, ...] = ((("TRACE", True),),)

OPTIONS = (
    FakeOption("SMALL", choice=1),
    FakeOption("FAST", choice=1),
    FakeOption("DEBUG"),
    FakeOption("DEBUG_LIST", depends=DEBUG, selects=("HARD_LIST",)),
    FakeOption("DEBUG_PAGE", depends=DEBUG),
    FakeOption("HARD_LIST"),
    FakeOption("TRACE", selects=("RING", "CLOCK")),
    FakeOption("TRACE_FAST", depends=TRACE, default=True),
    FakeOption("PROBES", selects=("CLOCK",)),
    FakeOption("RING", prompt=False),
    FakeOption("CLOCK", prompt=False),
    FakeOption(
        "INLINE", depends=((("TRACE", False), ("PROBES", False)),), prompt=False, default=True
    ),
    FakeOption("PLAIN"),
)
SLOW = {
    "SMALL": "y",
    "DEBUG": "y",
    "DEBUG_LIST": "y",
    "DEBUG_PAGE": "y",
    "TRACE": "y",
    "PROBES": "y",
    "PLAIN": "y",
}


def config(**values: str) -> dict[str, str]:
    return {f"CONFIG_{name}": value for name, value in values.items()}


def names(flips: object) -> set[str]:
    assert isinstance(flips, tuple)
    return {flip.option.removeprefix("CONFIG_") for flip in flips}


class Case:
    """The slow config against one with everything off."""

    def __init__(self, folder: Path) -> None:
        self.conf = FakeConf(OPTIONS)
        self.slow = self.conf(config(**SLOW))
        self.fast = self.conf(config(FAST="y"))
        self.conf.calls = 0
        self.units = find_units(self.slow, self.fast, self.conf, self.conf.kconfig(folder))

    def unit(self, name: str) -> OptionGroup:
        return next(unit for unit in self.units if unit.name == name)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_units_by_name_in_an_order_that_can_be_flipped(case: Case) -> None:
    found = [unit.name for unit in case.units]
    assert sorted(found) == [
        "DEBUG",
        "DEBUG_LIST",
        "DEBUG_PAGE",
        "PLAIN",
        "PROBES",
        "SMALL",
        "TRACE",
    ]
    for at, unit in enumerate(case.units):
        assert set(unit.needs) <= set(found[:at])


def test_members_of_a_choice_move_together(case: Case) -> None:
    assert names(case.unit("SMALL").options) == {"SMALL", "FAST"}
    assert case.unit("SMALL").asked == ("CONFIG_FAST", "CONFIG_SMALL")


def test_what_is_selected_comes_with_what_selects_it(case: Case) -> None:
    assert names(case.unit("DEBUG_LIST").options) == {"DEBUG_LIST", "HARD_LIST"}
    assert case.unit("DEBUG_LIST").asked == ("CONFIG_DEBUG_LIST",)


def test_what_is_on_by_default_comes_with_what_it_depends_on(case: Case) -> None:
    assert names(case.unit("TRACE").options) == {"TRACE", "TRACE_FAST", "RING"}


def test_a_dependency_goes_last(case: Case) -> None:
    assert case.unit("DEBUG").needs == ("DEBUG_LIST", "DEBUG_PAGE")
    assert names(case.unit("DEBUG").options) == {"DEBUG"}


def test_what_depends_on_two_units_is_shared(case: Case) -> None:
    for name in ("TRACE", "PROBES"):
        assert names(case.unit(name).shared) == {"CLOCK", "INLINE"}
    assert not case.unit("PLAIN").shared


def test_few_calls_when_the_files_tell_everything(case: Case) -> None:
    # One for each end and one for each unit.
    assert case.conf.calls == 2 + len(case.units)


def test_the_way_back_has_the_needs_the_other_way_round(tmp_path: Path) -> None:
    case = Case(tmp_path)
    units = find_units(case.fast, case.slow, case.conf, case.conf.kconfig(tmp_path))
    by_name = {unit.name: unit for unit in units}
    assert by_name["DEBUG_LIST"].needs == by_name["DEBUG_PAGE"].needs == ("DEBUG",)
    assert not by_name["DEBUG"].needs


def test_flipping_some_units(case: Case) -> None:
    mixed = flipped(case.slow, case.fast, case.units, ["DEBUG", "PLAIN"], case.conf)
    changed = {flip.option for flip in explain_diff(case.slow, mixed)}
    assert changed == {
        f"CONFIG_{name}" for name in ("DEBUG", "DEBUG_LIST", "DEBUG_PAGE", "HARD_LIST", "PLAIN")
    }
    assert flipped_units(case.slow, case.units, mixed) == {
        "DEBUG",
        "DEBUG_LIST",
        "DEBUG_PAGE",
        "PLAIN",
    }


def test_what_appears_only_in_between_is_kept_off(tmp_path: Path) -> None:
    between: tuple[Term, ...] = ((("NEW", True), ("OLD", True)),)
    options = (
        FakeOption("NEW"),
        FakeOption("OLD"),
        FakeOption("BETWEEN", depends=between, default=True),
    )
    conf = FakeConf(options)
    old, new = conf(config(OLD="y")), conf(config(NEW="y"))
    units = find_units(old, new, conf, conf.kconfig(tmp_path))
    assert [unit.name for unit in units] == ["NEW", "OLD"]
    mixed = flipped(old, new, units, ["NEW"], conf)
    assert mixed["CONFIG_NEW"] == mixed["CONFIG_OLD"] == "y"
    assert mixed["CONFIG_BETWEEN"] == "n"


def test_option_on_two_others_is_a_unit_of_its_own(tmp_path: Path) -> None:
    both: tuple[Term, ...] = ((("DEBUG", True), ("FS", True)),)
    options = (FakeOption("DEBUG"), FakeOption("FS"), FakeOption("BOTH", both, default=True))
    conf = FakeConf(options)
    a, b = conf(config(DEBUG="y", FS="y")), conf({})
    units = {unit.name: unit for unit in find_units(a, b, conf, conf.kconfig(tmp_path))}
    assert units["DEBUG"].needs == units["FS"].needs == ("BOTH",)


def test_needs_of_needs_are_needs(tmp_path: Path) -> None:
    either: tuple[Term, ...] = ((("P", True),), (("Q", True),))
    options = (
        FakeOption("P"),
        FakeOption("Q"),
        FakeOption("Z_EITHER", either),
        FakeOption("WITH_P", ((("Z_EITHER", True), ("P", True)),)),
        FakeOption("WITH_Q", ((("Z_EITHER", True), ("Q", True)),)),
    )
    conf = FakeConf(options)
    a, b = conf({}), conf({f"CONFIG_{option.name}": "y" for option in options})
    units = {unit.name: unit for unit in find_units(a, b, conf, conf.kconfig(tmp_path))}
    assert len(units["Z_EITHER"].needs) == 1
    for name in ("WITH_P", "WITH_Q"):
        assert {"Z_EITHER", *units["Z_EITHER"].needs} <= set(units[name].needs)


def test_option_that_does_not_follow_as_the_files_log(tmp_path: Path) -> None:
    conf = FakeConf((FakeOption("DEBUG"), FakeOption("SUB", DEBUG)))
    said = FakeConf((FakeOption("DEBUG"), FakeOption("SUB", DEBUG, prompt=False)))
    a, b = conf(config(DEBUG="y", SUB="y")), conf(config(DEBUG="y"))
    units = find_units(a, b, conf, said.kconfig(tmp_path))
    assert [unit.asked for unit in units] == [("CONFIG_SUB",)]


def test_equal_configs_have_no_units() -> None:
    conf = FakeConf(OPTIONS)
    granted = conf({})
    assert find_units(granted, granted, conf, Kconfig()) == ()


def test_config_that_the_tree_does_not_grant() -> None:
    conf = FakeConf(OPTIONS)
    granted = conf({})
    with pytest.raises(LabError, match="CONFIG_DEBUG_LIST"):
        find_units({**granted, "CONFIG_DEBUG_LIST": "y"}, granted, conf, Kconfig())


@st.composite
def fake_options(draw: st.DrawFn) -> tuple[FakeOption, ...]:
    count = draw(st.integers(2, 9))
    all_names = [f"O{number}" for number in range(count)]
    pair_at = draw(st.one_of(st.none(), st.integers(0, count - 2)))
    options = []
    for at, name in enumerate(all_names):
        choice = int(pair_at is not None and at - pair_at in (0, 1))
        earlier = st.tuples(st.sampled_from(all_names[:at] or all_names), st.booleans())
        terms = (
            draw(
                st.lists(
                    st.lists(earlier, min_size=1, max_size=2, unique_by=lambda p: p[0]), max_size=2
                )
            )
            if at and not choice
            else []
        )
        later = [
            other
            for number, other in enumerate(all_names)
            if number > at and (pair_at is None or number - pair_at not in (0, 1))
        ]
        selects = draw(st.lists(st.sampled_from(later), max_size=1)) if later else []
        options.append(
            FakeOption(
                name=name,
                depends=tuple(tuple(term) for term in terms),
                default=draw(st.booleans()) and not choice,
                prompt=bool(choice) or draw(st.integers(0, 3)) > 0,
                selects=tuple(selects),
                choice=choice,
            )
        )
    return tuple(options)


def asked(options: tuple[FakeOption, ...]) -> st.SearchStrategy[Mapping[str, str]]:
    values = {f"CONFIG_{option.name}": st.sampled_from("yn") for option in options}
    return st.fixed_dictionaries(values)


@given(st.data(), st.booleans())
def test_units_of_random_configs(data: st.DataObject, told: bool) -> None:
    """Whether the files are read or not: what is claimed of units holds."""
    options = data.draw(fake_options())
    conf = FakeConf(options)
    a, b = conf(data.draw(asked(options))), conf(data.draw(asked(options)))
    with TemporaryDirectory() as folder:
        kconfig = conf.kconfig(Path(folder)) if told else Kconfig()
    units = find_units(a, b, conf, kconfig)
    differ = {flip.option for flip in explain_diff(a, b)}
    by_hand = [option for unit in units for option in unit.asked]
    assert len(by_hand) == len(set(by_hand))
    assert set(by_hand) <= differ
    assert differ == {flip.option for unit in units for flip in (*unit.options, *unit.shared)}
    assert len({unit.name for unit in units}) == len(units)
    everything = [unit.name for unit in units]
    assert not explain_diff(flipped(a, b, units, everything, conf), b)
    assert not explain_diff(flipped(a, b, units, [], conf), a)
    for unit in units:
        chosen = closed(units, [unit.name])
        assert closed(units, chosen) == chosen
        mixed = flipped(a, b, units, [unit.name], conf)
        assert flipped_units(a, units, mixed) == chosen
        changed = {flip.option for flip in explain_diff(a, mixed)}
        assert {flip.option for flip in unit.options} <= changed
