# SPDX-License-Identifier: GPL-2.0-or-later
"""What the lab sets in a config, and how a config comes about from base, lab and wishes."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdelta.host.command import Result
from kdelta.kernels.arches import kernel_arches
from kdelta.kernels.config.configure import (
    ConfigFailed,
    ConfigStep,
    Configured,
    configure,
    olddefconfig,
)
from kdelta.kernels.config.kconfig import (
    OFF,
    OptionFlip,
    explain_diff,
    parse_config,
    render_config,
    without_modules,
)
from kdelta.kernels.config.lab_config import (
    lab_options,
    missing_options,
    parse_lab_config,
)
from kdelta.spec.note import SpecNote
from tests.kernels.fake_conf import FakeConf, FakeOption

ARCHES = tuple(kernel_arches())
LAB = {lab.option: lab.value for lab in lab_options("x86")}
NEEDED = tuple(lab for lab in lab_options("x86") if lab.group in ("boot", "vmlinux"))
HEAD = "# Linux/x86 6.12.1 Kernel Configuration\n"

OPTIONS = (
    *(FakeOption(lab.option.removeprefix("CONFIG_")) for lab in NEEDED),
    FakeOption("SMP"),
    FakeOption("WERROR", default=True),
    FakeOption("NONE", choice=1),
    FakeOption("VOLUNTARY", choice=1),
    FakeOption("DEBUG"),
    FakeOption("DEBUG_LIST", depends=((("DEBUG", True),),)),
    FakeOption("BFQ"),
)


class FakeTree:
    """A tree whose make knows some targets; it remembers what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        self.out = folder / "out"
        self.conf = FakeConf(OPTIONS)
        self.conf.kconfig(self.tree)
        self.calls: list[list[str]] = []

    def make(self, words: Sequence[str]) -> Result:
        self.calls.append(list(words))
        *variables, target = words
        file = self.out / ".config"
        asked = parse_config(file.read_text()) if file.exists() else {}
        if target == "mod2noconfig":
            asked = without_modules(asked)
        elif target in ("defconfig", "vexpress_defconfig"):
            asked = {"CONFIG_BFQ": "y"}
        elif target == "allnoconfig":
            given = dict(variable.split("=", 1) for variable in variables)
            asked = {f"CONFIG_{option.name}": OFF for option in OPTIONS if option.prompt}
            asked |= parse_config(Path(given["KCONFIG_ALLCONFIG"]).read_text())
        elif target != "olddefconfig":
            said = "scripts/kconfig/Makefile:111: *** x.config is not there.  Stop.\n"
            return Result(tuple(words), 2, "", f"{said}make: *** [Makefile:2: x] Error 2\n")
        file.write_text(HEAD + render_config(self.conf(asked)))
        return Result(tuple(words), 0, "", "")

    def configure(
        self, *steps: ConfigStep, own: str | None = None, arch: str = "x86"
    ) -> Configured:
        found = configure(self.out, self.tree, steps, self.make, own_config=own, arch=arch)
        assert isinstance(found, Configured)
        assert (self.out / ".config").read_text() == found.text
        return found


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path)


def whole(name: str = "my.config", **values: str) -> ConfigStep:
    known = {f"CONFIG_{option.name}" for option in OPTIONS}
    lab = {name: value for name, value in LAB.items() if name in known}
    options = {**lab, **{f"CONFIG_{key}": value for key, value in values.items()}}
    return ConfigStep("base", name, HEAD + render_config(options))


def option(name: str, value: str) -> ConfigStep:
    return ConfigStep("option", f"CONFIG_{name}", value)


@pytest.mark.parametrize("arch", ARCHES)
def test_every_option_of_the_lab_has_a_reason_and_a_value(arch: str) -> None:
    for options in (lab_options(arch), lab_options(arch, "small")):
        assert len({lab.option for lab in options}) == len(options)
        for lab in options:
            assert lab.why.strip()
            assert re.fullmatch(r'[yn]|""', lab.value)
    groups = {lab.group for lab in lab_options(arch)}
    assert groups <= {"boot", "vmlinux", "helps", "locked", "builds"}
    assert groups >= {"boot", "builds"}


@pytest.mark.parametrize("arch", ["x86", "arm64", "riscv"])
def test_small_config_and_lab_do_not_overlap(arch: str) -> None:
    small = {lab.option for lab in lab_options(arch, "small")}
    assert not small & {lab.option for lab in lab_options(arch)}
    assert {"CONFIG_NET", "CONFIG_CRYPTO_AES", "CONFIG_SMP"} <= small


def test_what_depends_on_the_architecture_is_set_there_only() -> None:
    consoles = {
        arch: {lab.option for lab in lab_options(arch) if lab.option.endswith("_CONSOLE")}
        for arch in ARCHES
    }
    assert consoles["x86"] == consoles["riscv"] == {"CONFIG_SERIAL_8250_CONSOLE"}
    assert consoles["arm"] == consoles["arm64"] == {"CONFIG_SERIAL_AMBA_PL011_CONSOLE"}
    assert "CONFIG_PVH" in LAB
    assert LAB.keys().isdisjoint({"CONFIG_SMP_ON_UP", "CONFIG_ARCH_VEXPRESS"})
    assert {lab.option: lab.value for lab in lab_options("arm")}["CONFIG_SMP_ON_UP"] == "n"


def test_what_the_lab_sets_is_what_it_would_miss() -> None:
    assert missing_options(render_config(LAB), "vmlinux") == []
    without = {**LAB, "CONFIG_TMPFS": "m", "CONFIG_SYSFS": "n"}
    found = {option.option for option in missing_options(render_config(without))}
    assert found == {"CONFIG_TMPFS", "CONFIG_SYSFS"}


def test_option_without_a_reason_is_an_error() -> None:
    with pytest.raises(ValueError, match="CONFIG_B"):
        parse_lab_config("#: boot: x\n# why\nCONFIG_A=y\nCONFIG_B=y\n")
    with pytest.raises(ValueError, match="CONFIG_A"):
        parse_lab_config("# why\nCONFIG_A=y\n")


def test_without_any_config_a_small_one(tree: FakeTree) -> None:
    found = tree.configure()
    granted = parse_config(found.text)
    assert found.base == "allnoconfig"
    assert granted["CONFIG_SMP"] == "y"
    assert granted["CONFIG_WERROR"] == "n"
    assert (found.lab, found.changed, found.missing) == ((), (), ())


def test_without_any_config_that_of_the_architecture(tree: FakeTree) -> None:
    found = tree.configure(arch="arm")
    assert found.base == "vexpress_defconfig"
    assert parse_config(found.text)["CONFIG_BFQ"] == "y"
    # What the lab of another architecture wants is not asked for.
    assert parse_config(found.text)["CONFIG_PVH"] == "n"
    assert parse_config(found.text)["CONFIG_TMPFS"] == "y"
    missing = [option.option for option in found.missing]
    assert "CONFIG_SERIAL_AMBA_PL011_CONSOLE" in missing
    own = tree.configure(arch="arm", own=whole(VOLUNTARY="y").value)
    assert own.base == "the tree's .config"


def test_the_trees_own_config_is_a_base(tree: FakeTree) -> None:
    found = tree.configure(own=whole(VOLUNTARY="y").value)
    assert found.base == "the tree's .config"
    assert parse_config(found.text)["CONFIG_VOLUNTARY"] == "y"
    assert parse_config(found.text)["CONFIG_SMP"] == "n"


def test_last_whole_config_is_the_base(tree: FakeTree) -> None:
    found = tree.configure(
        whole("one.config", BFQ="y"), option("DEBUG", "y"), whole("two.config"), own="CONFIG_BFQ=y"
    )
    assert found.base == "two.config"
    assert parse_config(found.text)["CONFIG_BFQ"] == "n"
    # An option is asked for whatever stands before or after it.
    assert parse_config(found.text)["CONFIG_DEBUG"] == "y"


def test_what_the_lab_changes_is_reported(tree: FakeTree) -> None:
    found = tree.configure(whole(PVH="n", TMPFS="m", WERROR="y"))
    assert found.lab == (
        OptionFlip("CONFIG_PVH", "n", "y"),
        OptionFlip("CONFIG_TMPFS", "m", "y"),
        OptionFlip("CONFIG_WERROR", "y", "n"),
    )
    assert found.changed == ()


def test_the_user_has_the_last_word(tree: FakeTree) -> None:
    found = tree.configure(whole(), option("WERROR", "y"), option("PROC_FS", "n"))
    assert parse_config(found.text)["CONFIG_WERROR"] == "y"
    assert [missing.option for missing in found.missing] == ["CONFIG_PROC_FS"]
    assert (found.lab, found.refused) == ((), ())


def test_last_member_of_a_choice_wins(tree: FakeTree) -> None:
    found = tree.configure(whole(VOLUNTARY="y"), option("NONE", "y"))
    granted = parse_config(found.text)
    assert (granted["CONFIG_NONE"], granted["CONFIG_VOLUNTARY"]) == ("y", "n")
    again = tree.configure(whole(), option("NONE", "y"), option("VOLUNTARY", "y"))
    assert parse_config(again.text)["CONFIG_VOLUNTARY"] == "y"
    assert again.refused == ()
    assert list(again.asked) == ["CONFIG_NONE", "CONFIG_VOLUNTARY"]


def test_what_is_asked_for_twice_counts_as_later(tree: FakeTree) -> None:
    wishes = [option(name, "y") for name in ("NONE", "VOLUNTARY", "NONE")]
    found = tree.configure(whole(), *wishes)
    assert list(found.asked) == ["CONFIG_VOLUNTARY", "CONFIG_NONE"]
    assert found.refused == ()


def test_what_was_asked_for_is_no_change_to_be_told(tree: FakeTree) -> None:
    assert tree.configure(whole(BFQ="y"), option("BFQ", "n")).changed == ()


def test_fragment_is_asked_for_option_by_option(tree: FakeTree) -> None:
    fragment = ConfigStep("fragment", "debug.config", "CONFIG_DEBUG_LIST=y\nCONFIG_BFQ=y\n")
    found = tree.configure(whole(), fragment)
    assert [(r.option, r.granted) for r in found.refused] == [("CONFIG_DEBUG_LIST", "n")]
    assert found.refused[0].reason == "its dependencies are not met: CONFIG_DEBUG is off"
    assert parse_config(found.text)["CONFIG_BFQ"] == "y"


def test_what_a_whole_config_does_not_get_is_no_refusal(tree: FakeTree) -> None:
    found = tree.configure(whole(DEBUG_LIST="y", GONE="y"))
    assert found.refused == ()
    assert found.changed == (
        OptionFlip("CONFIG_DEBUG_LIST", "y", "n"),
        OptionFlip("CONFIG_GONE", "y", "n"),
    )


def test_targets_run_in_their_place(tree: FakeTree) -> None:
    steps = (whole(BFQ="m"), ConfigStep("target", "mod2noconfig"), option("DEBUG", "m"))
    found = tree.configure(*steps)
    assert [words[-1] for words in tree.calls] == ["olddefconfig", "mod2noconfig", "olddefconfig"]
    assert parse_config(found.text)["CONFIG_BFQ"] == "n"
    assert found.refused[0].reason == "it is on or off, it cannot be a module"


def test_target_as_base(tree: FakeTree) -> None:
    found = tree.configure(option("DEBUG", "y"), ConfigStep("target", "defconfig"))
    granted = parse_config(found.text)
    assert found.base == "defconfig"
    assert granted["CONFIG_BFQ"] == granted["CONFIG_DEBUG"] == "y"


def test_base_that_does_not_look_whole(tree: FakeTree) -> None:
    step = ConfigStep("base", "saved", "CONFIG_BFQ=y\n")
    found = tree.configure(step)
    assert (found.base, found.asked) == ("saved", {})
    # By default: as conf has it, not as allnoconfig has it. The lab turns it off.
    assert OptionFlip("CONFIG_WERROR", "y", "n") in found.lab


def test_target_that_fails_is_data(tree: FakeTree) -> None:
    steps = [whole(), ConfigStep("target", "x.config")]
    found = configure(tree.out, tree.tree, steps, tree.make)
    assert found == ConfigFailed("x.config", "x.config is not there")


def test_normalizing(tree: FakeTree) -> None:
    tree.out.mkdir()
    normalize = olddefconfig(tree.out, tree.make)
    assert normalize({"CONFIG_DEBUG_LIST": "y"})["CONFIG_DEBUG"] == "n"
    assert "CONFIG_DEBUG_LIST" not in normalize({"CONFIG_DEBUG_LIST": "y"})


def test_what_changes_nothing_is_named(tree: FakeTree) -> None:
    steps = [whole(BFQ="y", DEBUG="n"), option("BFQ", "y"), option("DEBUG", "y")]
    fragment = ConfigStep("fragment", "so.config", "CONFIG_BFQ=y\n# CONFIG_SMP is not set\n")
    found = tree.configure(*steps, fragment)
    assert found.idle == ("CONFIG_BFQ", "so.config")
    assert SpecNote("so.config changes nothing: what it sets is so already") in found.notes


def test_what_undoes_a_step_or_is_refused_changes_something(tree: FakeTree) -> None:
    no_modules = ConfigStep("target", "mod2noconfig")
    assert tree.configure(whole(BFQ="m"), no_modules, option("BFQ", "m")).idle == ()
    steps = (whole(DEBUG="y", DEBUG_LIST="y"), option("DEBUG", "n"), option("DEBUG_LIST", "y"))
    found = tree.configure(*steps)
    assert [one.option for one in found.refused] == ["CONFIG_DEBUG_LIST"]
    assert found.idle == ()


def test_options_that_the_tree_does_not_have_are_refused_or_left_out(tree: FakeTree) -> None:
    text = "CONFIG_GONE=y\nCONFIG_BFQ=y\n# CONFIG_LOST is not set\nCONFIG_AWAY=m\n"
    step = ConfigStep("fragment", "x.config", text)
    found = tree.configure(whole(), step)
    assert [one.option for one in found.refused] == ["CONFIG_GONE", "CONFIG_AWAY"]
    assert found.unknown == ("CONFIG_GONE", "CONFIG_LOST", "CONFIG_AWAY")
    again = configure(tree.out, tree.tree, [whole(), step], tree.make, allow_unknown=True)
    assert isinstance(again, Configured)
    assert (again.refused, again.unknown) == ((), found.unknown)
    assert parse_config(again.text)["CONFIG_BFQ"] == "y"
    text = "this tree does not have CONFIG_GONE, CONFIG_LOST, CONFIG_AWAY"
    assert list(again.notes) == [SpecNote(text, lost=True)]


VALUES = st.dictionaries(
    st.sampled_from([*(one.name for one in OPTIONS), "GONE", "LOST"]), st.sampled_from("ynm")
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(VALUES, VALUES)
def test_asked_and_granted_differ_by_what_is_reported(
    tree: FakeTree, base: dict[str, str], over: dict[str, str]
) -> None:
    """The cross-check of a whole config, a fragment and olddefconfig: nothing is silent."""
    values = {f"CONFIG_{name}": value for name, value in base.items()}
    asked = {f"CONFIG_{name}": value for name, value in over.items()}
    steps = [
        ConfigStep("base", "b", render_config(values)),
        ConfigStep("fragment", "f", render_config(asked)),
    ]
    found = tree.configure(*steps)
    differ = explain_diff(values | asked, parse_config(found.text))
    listed = {flip.option: flip.after for flip in (*found.lab, *found.changed, *found.derived)}
    listed |= {one.option: one.granted for one in found.refused}
    for flip in differ:
        by_choice = flip.option in ("CONFIG_NONE", "CONFIG_VOLUNTARY") and flip.option in asked
        by_default = flip.option not in values and flip.option not in asked
        assert by_choice or by_default or listed.get(flip.option) == flip.after, flip
    for option_name, value in listed.items():
        assert parse_config(found.text).get(option_name, "n") == value
