# SPDX-License-Identifier: GPL-2.0-or-later
"""Why options were refused, and the reader of Kconfig files that knows."""

from pathlib import Path

import pytest

from kdelta.kernels.config.kconfig_expr import evaluate, parse_expr
from kdelta.kernels.config.kconfig_files import Kconfig, read_kconfig
from kdelta.kernels.config.reasons import Refused, reason_for, refusal_text, refused

KCONFIG = r"""
mainmenu "Test"

compiler-ok := y
source "arch/$(SRCARCH)/Kconfig"

menu "Debugging"
	depends on EXPERT

config DEBUG
	bool "Debugging, if you like"
	help
		Say y.

		config NOT_AN_OPTION
			in a help text

config DEBUG_LIST # checks
	bool "Lists" if DEBUG
	depends on DEBUG && \
		!TINY
	select HARD_LIST

endmenu

config HARD_LIST
	bool "Hard lists"

config TINY
	bool "Tiny"

config EXPERT
	bool "Experts"

config HIDDEN
	bool
	select FORCED if DEBUG

config FORCED
	bool "Forced"

config DRIVER
	tristate "Driver"
	depends on BUS

config BUS
	tristate "Bus"

config MODULES
	bool "Modules"
	modules

config LEVEL
	int "Level"
	range 1 MOST if DEBUG
	range 1 8
	default 4

config MOST
	int
	default 6

config NAME
	string "Name"

config NEEDS_CC
	bool "Compiler's"
	depends on $(cc-option,-fnice (really))

config NEEDS_BOTH
	bool "Compiler's"
	depends on $(cc-option,-fnice) && TINY

choice
	prompt "Speed"
	default SLOW
config SLOW
	bool "Slow"
config FAST
	bool "Fast"
if EXPERT
config MAD
	bool "Mad"
endif
endchoice

config EITHER
	bool "Either"
	depends on TINY || (BUS = y && LEVEL > 5)
"""

GRANTED = {
    "CONFIG_EXPERT": "y",
    "CONFIG_TINY": "n",
    "CONFIG_BUS": "m",
    "CONFIG_MODULES": "y",
    "CONFIG_LEVEL": "4",
    "CONFIG_MOST": "6",
    "CONFIG_NAME": '""',
    "CONFIG_FAST": "y",
    "CONFIG_HARD_LIST": "y",
}


@pytest.fixture
def kconfig(tmp_path: Path) -> Kconfig:
    (tmp_path / "Kconfig").write_text(KCONFIG)
    (tmp_path / "arch/x86").mkdir(parents=True)
    (tmp_path / "arch/x86/Kconfig").write_text('config X86\n\tdef_bool y\nrsource "more/*.k"\n')
    (tmp_path / "arch/x86/more").mkdir()
    (tmp_path / "arch/x86/more/one.k").write_text("config ONE\n\tdef_tristate m if X86\n")
    return read_kconfig(tmp_path, "x86_64")


def why(kconfig: Kconfig, option: str, asked: str, **granted: str) -> str:
    now = {**GRANTED, **{f"CONFIG_{name}": value for name, value in granted.items()}}
    return reason_for(f"CONFIG_{option}", asked, now, kconfig)


def test_what_the_reader_finds(kconfig: Kconfig) -> None:
    assert "NOT_AN_OPTION" not in kconfig.entries
    assert {"X86", "ONE", "DEBUG_LIST", "MAD"} <= kconfig.entries.keys()
    assert kconfig.kind("ONE") == "tristate"
    assert kconfig.choice_of("FAST") == ["SLOW", "FAST", "MAD"]
    assert kconfig.choice_of("DEBUG") == []
    (entry,) = kconfig.entries["DEBUG_LIST"]
    assert entry.conditions == ["EXPERT", "DEBUG &&  !TINY"]
    assert entry.prompt == "DEBUG"
    assert [select.value for select in entry.selects] == ["HARD_LIST"]
    assert kconfig.entries["DEBUG"][0].prompt == ""
    assert [entry.name for entry, _ in kconfig.selectors("FORCED")] == ["HIDDEN"]


def test_missing_tree_has_no_options(tmp_path: Path) -> None:
    assert read_kconfig(tmp_path / "nowhere").entries == {}


def test_no_such_option(kconfig: Kconfig) -> None:
    assert why(kconfig, "DEBUG_LISTS", "y") == (
        "this tree has no such option for x86; CONFIG_DEBUG_LIST is one"
    )
    assert why(kconfig, "QUITE_ELSE", "y") == "this tree has no such option for x86"


def test_dependency_that_is_off(kconfig: Kconfig) -> None:
    assert why(kconfig, "DEBUG_LIST", "y") == ("its dependencies are not met: CONFIG_DEBUG is off")
    assert why(kconfig, "DEBUG_LIST", "y", DEBUG="y", TINY="y") == (
        "its dependencies are not met: CONFIG_TINY is on"
    )


def test_dependency_that_is_a_module(kconfig: Kconfig) -> None:
    assert why(kconfig, "DRIVER", "y") == "its dependencies are not met: CONFIG_BUS is a module"


def test_of_alternatives_one_has_to_change(kconfig: Kconfig) -> None:
    assert why(kconfig, "EITHER", "y") == (
        "its dependencies are not met: "
        "one of these has to change: CONFIG_TINY is off; "
        "(BUS = y) does not hold and (LEVEL > 5) does not hold"
    )


def test_compiler_is_suspected_last(kconfig: Kconfig) -> None:
    assert why(kconfig, "NEEDS_CC", "y").endswith("says no to $(cc-option,-fnice (really))")
    assert why(kconfig, "NEEDS_BOTH", "y") == "its dependencies are not met: CONFIG_TINY is off"


def test_selected_by_another(kconfig: Kconfig) -> None:
    assert why(kconfig, "HARD_LIST", "n", DEBUG_LIST="y") == "CONFIG_DEBUG_LIST selects it"
    assert why(kconfig, "FORCED", "n", HIDDEN="y") == ""
    assert why(kconfig, "FORCED", "n", HIDDEN="y", DEBUG="y") == "CONFIG_HIDDEN selects it"


def test_user_is_not_asked(kconfig: Kconfig) -> None:
    assert why(kconfig, "HIDDEN", "y") == (
        "it cannot be set by hand, it follows from other options"
    )


def test_choice(kconfig: Kconfig) -> None:
    assert why(kconfig, "SLOW", "y") == "CONFIG_FAST was chosen instead"
    assert why(kconfig, "FAST", "n") == (
        "one option of its choice must be on, and no other could be"
    )


@pytest.mark.parametrize(
    ("option", "asked", "reason"),
    [
        ("DEBUG", "m", "it is on or off, it cannot be a module"),
        ("DEBUG", "3", "its value is on or off"),
        ("DRIVER", "3", "it is on, a module or off: y, m or n"),
        ("NAME", "3", "its value is a text"),
        ("LEVEL", "y", "its value is a number"),
        ("LEVEL", "9", "it has to be within 1 to 8"),
    ],
)
def test_wrong_values(kconfig: Kconfig, option: str, asked: str, reason: str) -> None:
    assert why(kconfig, option, asked) == reason


def test_range_whose_end_is_an_option(kconfig: Kconfig) -> None:
    assert why(kconfig, "LEVEL", "9", DEBUG="y") == "it has to be within 1 to 6"


def test_modules_are_off(kconfig: Kconfig) -> None:
    assert why(kconfig, "BUS", "m", MODULES="n", BUS="y") == "CONFIG_MODULES is off"


def test_refused_are_listed_as_asked(kconfig: Kconfig) -> None:
    asked = {
        "CONFIG_SLOW": "y",
        "CONFIG_DEBUG_LIST": "y",
        "CONFIG_EXPERT": "y",
        "CONFIG_LEVEL": "0x4",
        "CONFIG_NOWHERE": "n",
        "CONFIG_FAST": "y",
        "CONFIG_TINY": "n",
    }
    found = refused(asked, GRANTED, kconfig)
    # SLOW is not refused: FAST was asked for later.
    assert [(r.option, r.asked, r.granted) for r in found] == [("CONFIG_DEBUG_LIST", "y", "n")]
    assert str(found[0]) == (
        "CONFIG_DEBUG_LIST=y was not granted (it is off): "
        "its dependencies are not met: CONFIG_DEBUG is off"
    )


def test_many_refusals_are_a_list_that_is_cut() -> None:
    lines = refusal_text([Refused(f"CONFIG_A{n}", "y", "n") for n in range(26)]).splitlines()
    assert lines[0] == "26 options were not granted:"
    assert lines[1] == "  CONFIG_A0=y was not granted (it is off)"
    assert lines[20:] == ["  CONFIG_A19=y was not granted (it is off)", "  and 6 more"]


def test_of_many_unknown_options_few_are_looked_for_and_named(
    kconfig: Kconfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def no_such(name: str, _: Kconfig) -> str:
        looked.append(name)
        return "none"

    monkeypatch.setattr("kdelta.kernels.config.reasons._no_such", no_such)
    asked = {f"CONFIG_NEW_{number}": "y" for number in range(20_000)}
    found = refused(asked, GRANTED, kconfig)
    assert [one.option for one in found] == list(asked)
    assert len(looked) <= 20
    text = refusal_text(found, set(asked))
    assert "CONFIG_NEW_0, CONFIG_NEW_1, " in text
    assert " more (+allow-unknown leaves them out)" in text
    assert len(text) < 1000


def test_member_of_a_choice_that_lost_is_refused(kconfig: Kconfig) -> None:
    asked = {"CONFIG_FAST": "y", "CONFIG_MAD": "y"}
    (found,) = refused(asked, {**GRANTED, "CONFIG_EXPERT": "n"}, kconfig)
    assert found.option == "CONFIG_MAD"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y && m", 1),
        ("m || n", 1),
        ("!m", 1),
        ("!(BUS || TINY)", 1),
        ("BUS && EXPERT", 1),
        ("BUS = m", 2),
        ("LEVEL >= 0x4 && LEVEL < 5", 2),
        ('NAME = ""', 2),
        ("BUS != n", 2),
        ("BUS > n", 2),
        ("$(tool) && n", 0),
        ("$(tool) || y", 2),
        ("$(tool) || m", None),
        ("!$(tool)", None),
        ("A &&", None),
    ],
)
def test_values_of_conditions(text: str, value: int | None) -> None:
    assert evaluate(parse_expr(text), GRANTED) == value


ONE_OF = "one of these has to change:"
NO_TOOL = "the compiler or another tool says no to"

# The shapes of some options of Linux 6.12.
SHAPES = r"""
config X86
	def_bool y
	select HAVE_RUST if 64BIT
	select SUPPORTS_LTO if 64BIT

config 64BIT
	bool "64-bit"

config CC_IS_CLANG
	def_bool $(success,test "$(cc-name)" = Clang)

config LD_IS_LLD
	def_bool $(success,test "$(ld-name)" = LLD)

config SUPPORTS_LTO
	bool

config HAS_LTO
	def_bool y
	depends on CC_IS_CLANG && LD_IS_LLD
	depends on $(success,$(NM) --help | grep -qi llvm)
	depends on SUPPORTS_LTO
	depends on !KASAN || KASAN_HW

config LTO_THIN
	bool "Link-time optimization"
	depends on HAS_LTO

config KASAN
	bool "Check addresses"

config KASAN_HW
	bool

config HAVE_RUST
	bool

config RUST_IS_AVAILABLE
	def_bool $(success,$(srctree)/scripts/rust_is_available.sh)

config RUST
	bool "Rust support"
	depends on HAVE_RUST
	depends on RUST_IS_AVAILABLE

config UBSAN
	bool "Check undefined behaviour"

if UBSAN
config HAS_STRICT
	def_bool $(cc-option,-fs=strict)

config HAS_ARRAY
	def_bool $(cc-option,-fs=array)

config UBSAN_BOUNDS
	bool "Check bounds"
	depends on HAS_ARRAY || HAS_STRICT
endif

config SERIO_GSC
	bool "Keyboards of some machines"
	depends on GSC

config KEYBOARDS
	bool "More keyboards"
	depends on SGI || GSC

config KEYBOARDS_TEST
	bool "Even more keyboards"
	depends on SGI || COMPILE_TEST

config COMPILE_TEST
	bool "Compile all"

config NOT_HERE
	bool "Not here"
	depends on !X86

config SOUND
	bool "Sound"
	select PCM

config VIDEO
	bool "Video"
	select PCM

config PCM
	tristate

config PCM_DEBUG
	bool "Debug PCM"
	depends on PCM

config NO_PCM
	bool "No PCM"
	depends on !PCM

config LOOP_A
	def_bool LOOP_B

config LOOP_B
	def_bool LOOP_A

config LOOP
	bool "Loop"
	depends on LOOP_A
"""


@pytest.fixture
def shapes(tmp_path: Path) -> Kconfig:
    (tmp_path / "Kconfig").write_text(SHAPES)
    return read_kconfig(tmp_path)


@pytest.mark.parametrize(
    ("option", "on", "reason"),
    [
        ("LTO_THIN", "SUPPORTS_LTO", "it needs clang and lld (write +LLVM=1)"),
        ("LTO_THIN", "CC_IS_CLANG LD_IS_LLD SUPPORTS_LTO KASAN", "CONFIG_KASAN is on"),
        (
            "LTO_THIN",
            "CC_IS_CLANG LD_IS_LLD SUPPORTS_LTO",
            f"{NO_TOOL} $(success,$(NM) --help | grep -qi llvm)",
        ),
        ("RUST", "HAVE_RUST 64BIT", "Rust compiler 'rustc' could not be found"),
        ("RUST", "RUST_IS_AVAILABLE", "CONFIG_64BIT is off"),
        ("UBSAN_BOUNDS", "", "CONFIG_UBSAN is off"),
        (
            "UBSAN_BOUNDS",
            "UBSAN",
            f"{ONE_OF} {NO_TOOL} $(cc-option,-fs=array); {NO_TOOL} $(cc-option,-fs=strict)",
        ),
        ("SERIO_GSC", "", "x86 does not have CONFIG_GSC"),
        ("KEYBOARDS", "", "x86 does not have any of CONFIG_SGI and CONFIG_GSC"),
        ("KEYBOARDS_TEST", "", "CONFIG_COMPILE_TEST is off"),
        ("NOT_HERE", "", "x86 always has CONFIG_X86"),
        ("PCM_DEBUG", "", "CONFIG_PCM is off (CONFIG_SOUND or CONFIG_VIDEO would select it)"),
        ("NO_PCM", "PCM VIDEO", "CONFIG_PCM is on (CONFIG_VIDEO selects it)"),
        ("LOOP", "", "x86 does not have CONFIG_LOOP_A"),
    ],
)
def test_hidden_options_are_followed_to_what_can_be_set(
    shapes: Kconfig, option: str, on: str, reason: str
) -> None:
    granted = {f"CONFIG_{name}": "y" for name in ("X86", *on.split())}
    answers = {"RUST_IS_AVAILABLE": "Rust compiler 'rustc' could not be found"}
    said = reason_for(f"CONFIG_{option}", "y", granted, shapes, lambda name: answers.get(name, ""))
    assert said == f"its dependencies are not met: {reason}"
