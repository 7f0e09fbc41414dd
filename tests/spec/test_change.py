# SPDX-License-Identifier: GPL-2.0-or-later
"""+WORDS: what each means, by its form alone."""

import pytest

from kdelta.spec.change import (
    LAST_SEED,
    AlignChange,
    Change,
    CmdlineChange,
    DataShuffleChange,
    FileChange,
    FuzzChange,
    OptionChange,
    OrderChange,
    SectionsChange,
    ShuffleChange,
    VariableChange,
    parse_change,
)
from kdelta.spec.errors import UserError


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("+CONFIG_PREEMPT=y", OptionChange("CONFIG_PREEMPT", "y")),
        ("CONFIG_PREEMPT=y", OptionChange("CONFIG_PREEMPT", "y")),
        ("+CONFIG_SND_SOC_cs35=m", OptionChange("CONFIG_SND_SOC_cs35", "m")),
        ("+# CONFIG_B is not set", OptionChange("CONFIG_B", "n")),
        ("+#CONFIG_B is not set", OptionChange("CONFIG_B", "n")),
        ("+CONFIG_HZ=-250", OptionChange("CONFIG_HZ", "-250")),
        ("+CONFIG_START=0x1F", OptionChange("CONFIG_START", "0x1F")),
        ('+CONFIG_CMDLINE="a b"', OptionChange("CONFIG_CMDLINE", '"a b"')),
        ("+CONFIG_CMDLINE=a b", OptionChange("CONFIG_CMDLINE", '"a b"')),
        ('+CONFIG_CMDLINE=a\\"b', OptionChange("CONFIG_CMDLINE", '"a\\\\\\"b"')),
        ('+CONFIG_CMDLINE=""', OptionChange("CONFIG_CMDLINE", '""')),
        ("+KCFLAGS=-O3 -g", VariableChange("KCFLAGS", "-O3 -g")),
        ("+CROSS_COMPILE=", VariableChange("CROSS_COMPILE", "")),
        ("+LLVM=1", VariableChange("LLVM", "1")),
        ("+CFLAGS_core.o=-O0", VariableChange("CFLAGS_core.o", "-O0")),
        ("+fix.patch", FileChange("fix.patch")),
        ("+~/a b/0001-x.patch", FileChange("~/a b/0001-x.patch")),
        ("+x.diff", FileChange("x.diff")),
        ("+series.mbox", FileChange("series.mbox")),
        ("+t.mbx", FileChange("t.mbx")),
        ("+mail.eml", FileChange("mail.eml")),
        ("+.config", FileChange(".config")),
        ("+config", FileChange("config")),
        ("+config-6.1.0", FileChange("config-6.1.0")),
        ("+small.conf", FileChange("small.conf")),
        ("+small.cfg", FileChange("small.cfg")),
        ("+/boot/config-6.1", FileChange("/boot/config-6.1")),
        ("+./fragment", FileChange("./fragment")),
        ("+A.config", FileChange("A.config")),
        ("+defconfig", FileChange("defconfig")),
        ("+mod2noconfig", FileChange("mod2noconfig")),
        ("+fuzz:2", FuzzChange(2)),
        ("+sections", SectionsChange()),
        ("+order:hot.txt", OrderChange("hot.txt")),
        ("+order:/a b/x.config", OrderChange("/a b/x.config")),
        ("+shuffle:1", ShuffleChange(1)),
        (f"+shuffle:{LAST_SEED}", ShuffleChange(4294967294)),
        ("+dshuffle:1", DataShuffleChange(1)),
        ("+align:64", AlignChange(64)),
        ("+cmdline:mitigations=off", CmdlineChange(("mitigations=off",))),
        ("+cmdline:nosmt", CmdlineChange(("nosmt",))),
        ("+cmdline: a=1  b ", CmdlineChange(("a=1", "b"))),
        ("+cmdline:root=/dev/x.patch", CmdlineChange(("root=/dev/x.patch",))),
        ('+cmdline:dyndbg="file a.c +p" b', CmdlineChange(('dyndbg="file a.c +p"', "b"))),
    ],
)
def test_what_a_word_means(text: str, change: Change) -> None:
    assert parse_change(text) == change
    assert parse_change(str(change)) == change


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("+", "not a change", "CONFIG_X=y"),
        ("+fragment", "not a change: '+fragment'", "+./fragment"),
        ("+FRAGMENT", "not a change: '+FRAGMENT'", "+./FRAGMENT"),
        ("+CONFIG_A", "not a change", "+CONFIG_A=y or +CONFIG_A=n"),
        ("+CONFIG_A=", "no value", '""'),
        ("+CONFIG_A=Y", "not a value: 'Y'", "write y"),
        ("+PREEMPT=y", "not a variable of make", "+CONFIG_PREEMPT=y"),
        ("+O=/tmp/out", "O= cannot be given", "folders of its own"),
        ("+KBUILD_OUTPUT=x", "cannot be given", "folders of its own"),
        ("+KCONFIG_CONFIG=x", "cannot be given", "+FILE.config"),
        ("+M=drivers/net", "cannot be given", "modules"),
        ("+sections:1", "+sections takes no value", "write +sections"),
        ("+order", "no value", "+order:FILE"),
        ("+order:", "no value", "+order:FILE"),
        ("+shuffle", "no value", "+shuffle:1"),
        ("+fuzz", "not a number of lines", "+fuzz:0 to +fuzz:99"),
        ("+fuzz:100", "not a number of lines", "+fuzz:0 to +fuzz:99"),
        ("+shuffle:0", "not a seed", "+sections"),
        ("+dshuffle", "no value", "+dshuffle:1"),
        ("+dshuffle:0", "not a seed", "from 1 to"),
        ("+shuffle:-1", "not a seed", "from 1 to"),
        ("+shuffle:4294967295", "not a seed", "from 1 to 4294967294"),
        ("+shuffle:x", "not a seed", "a number"),
        ("+align:48", "not an alignment", "16, 32, 64"),
        ("+align:8", "not an alignment", "16, 32, 64"),
        ("+tree:/x", "not a change", "a kernel stands without +: tree:/x"),
        ("+a\nb.patch", "not a change", "one line"),
        ("+cmdline", "no boot parameter in '+cmdline:'", "+cmdline:mitigations=off"),
        ("+cmdline:", "no boot parameter in '+cmdline:'", "+cmdline:mitigations=off"),
        ("+cmdline:  ", "no boot parameter", "+cmdline:mitigations=off"),
        ("+cmdline:a\tb", "cannot set the boot parameter 'a\\tb': it has a char", "+cmdline:"),
        ("+cmdline:a\nb", "not a change", "one line"),
        ("+cmdline:a=\x07", "not printable ASCII", "+cmdline:"),
        ("+cmdline:a=\u00e0", "not printable ASCII", "+cmdline:"),
        ('+cmdline:a="b c', "a double quote is not closed", "without escapes"),
        ("+cmdline:=on", "'=on': it has no name", "+cmdline:"),
        ("+cmdline:rdinit=/x", "cannot set the boot parameter rdinit=/x: kdelta's agent", "leave"),
        ("+cmdline:audit=0 -- x", "cannot set the boot parameter --", "leave"),
        ("+cmdline:kdelta.as=none", "kdelta.as=none: such names are between", "leave"),
        ("+cmdline:noreplace-smp", "noreplace-smp: kdelta sets it", "leave"),
        ("+mitigations=off", "not a change: '+mitigations=off'", "+cmdline:mitigations=off"),
        ("+nosmt", "not a change: '+nosmt'", "+cmdline:nosmt; for a file"),
        ("+cgroup.memory=nokmem", "not a change", "+cmdline:cgroup.memory=nokmem"),
    ],
)
def test_what_is_no_change(text: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_change(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_which_names_may_be_targets_of_make() -> None:
    names = ["defconfig", "tinyconfig", "kvm_guest.config", "./x.config", "menuconfig", ".config"]
    may = [name for name in names if FileChange(name).may_be_target]
    assert may == ["defconfig", "tinyconfig", "kvm_guest.config"]
