# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels are named by what they differ in, whatever kind of spec they have, in every form."""

import msgspec
import pytest

from kdelta.report.model import KernelRuns
from kdelta.report.names import differences, kernel_name, side_names
from kdelta.studies.forms import FORMS
from tests.report.example import report
from tests.report.shown import stored

K61 = ("deb:linux-image-cloud-amd64=6.1.192-2@bookworm", "6.1.0-56-cloud-amd64")
NEXT_K61 = ("deb:linux-image-cloud-amd64=6.1.192-3@bookworm", "6.1.0-57-cloud-amd64")
RPM = (
    "rpm:./kernel-core-6.11.4-301.fc41.x86_64.rpm,./kernel-modules-core-6.11.4-301.fc41.x86_64.rpm"
)
K612 = ("deb:linux-image-6.12-cloud-amd64=6.12.117-1~deb12u1", "6.12.117+deb12-cloud-amd64")
RT = ("deb:linux-image-6.12-rt-amd64=6.12.117-1~deb12u1", "6.12.117+deb12-rt-amd64")
TREE = ("~/linux", "6.12.0")
COMMIT = ("git:~/linux@1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d", "6.12.0")
SOURCE = ("deb-src:linux-source-6.12 +./small.config", "6.12.117")

SAME_PSI = "6.12.117-1~deb12u1 with psi=0 against 6.12.117-1~deb12u1 without"


def side(kernel: tuple[str, str], changes: str = "") -> KernelRuns:
    return KernelRuns(f"{kernel[0]} {changes}".strip(), "0" * 64, kernel[1], ())


@pytest.mark.parametrize(
    ("base", "other", "sentence", "columns"),
    [
        (side(K61), side(K612), "6.12.117-1~deb12u1 against 6.1.192-2", ("6.1.192-2", "6.12.117")),
        (
            side(K61),
            side(K61, "+cmdline:psi=0"),
            "6.1.192-2 with psi=0 against 6.1.192-2 without",
            ("without", "with psi=0"),
        ),
        (
            side(K612, "+cmdline:psi=0"),
            side(K612),
            "6.12.117-1~deb12u1 without against 6.12.117-1~deb12u1 with psi=0",
            ("with psi=0", "without"),
        ),
        (
            side(K612, "+cmdline:a"),
            side(K612, "+cmdline:b"),
            "6.12.117-1~deb12u1 with b against 6.12.117-1~deb12u1 with a",
            ("a", "b"),
        ),
        (
            side(K612, "+cmdline:a"),
            side(K612, "+cmdline:a +cmdline:b"),
            "6.12.117-1~deb12u1 with b against 6.12.117-1~deb12u1 without, both with a",
            ("without", "with b"),
        ),
        (
            side(K61),
            side(K612, "+cmdline:psi=0"),
            "6.12.117-1~deb12u1 with psi=0 against 6.1.192-2",
            ("6.1.192-2", "6.12.117"),
        ),
        (
            side(K612),
            side(RT),
            "6.12.117+deb12-rt-amd64 against 6.12.117+deb12-cloud-amd64",
            ("cloud", "rt"),
        ),
        (
            side(TREE),
            side(TREE, "+./a/fix.patch"),
            "~/linux with fix.patch against ~/linux without",
            ("without", "with fix.patch"),
        ),
        (
            side(TREE, "+./a/fix.patch"),
            side(TREE, "+./b/fix.patch"),
            "~/linux with ./b/fix.patch against ~/linux with ./a/fix.patch",
            ("./a/fix.patch", "./b/fix.patch"),
        ),
        (
            side(COMMIT),
            side(("git:~/linux@v6.12", "6.12.0")),
            "v6.12 against 1a2b3c4d5e6f",
            ("1a2b3c4d5e6f", "v6.12"),
        ),
        (
            side(COMMIT),
            side(COMMIT, "+CONFIG_PSI=n"),
            "~/linux at 1a2b3c4d5e6f with CONFIG_PSI=n against ~/linux at 1a2b3c4d5e6f without",
            ("without", "with CONFIG_PSI=n"),
        ),
        (
            side(SOURCE, "+sections"),
            side(SOURCE, "+shuffle:7"),
            "6.12.117 with shuffle:7 against 6.12.117 with sections, both with small.config",
            ("sections", "shuffle:7"),
        ),
        (
            side(("image:/a/vmlinuz", "")),
            side(("image:/b/vmlinuz", "")),
            "/b/vmlinuz against /a/vmlinuz",
            ("/a/vmlinuz", "/b/vmlinuz"),
        ),
        (
            side(K61),
            side(NEXT_K61),
            "6.1.192-3 against 6.1.192-2",
            ("6.1.192-2", "6.1.192-3"),
        ),
        (
            side(("deb:linux-image-6.12-rt-amd64=6.12.117-1~deb12u1", "6.12.117+deb12-rt-amd64")),
            side(("deb:linux-image-6.12-rt-amd64=6.12.117-2~deb12u1", "6.12.117+deb12-rt-amd64")),
            "6.12.117-2~deb12u1 against 6.12.117-1~deb12u1",
            ("6.12.117-1~deb12u1", "6.12.117-2~deb12u1"),
        ),
        (
            side((RPM, "6.11.4-301.fc41.x86_64")),
            side(("pkg:./linux-6.12.1.arch1-1-x86_64.pkg.tar.zst", "6.12.1-arch1-1")),
            "6.12.1.arch1-1 against 6.11.4-301.fc41",
            ("6.11.4", "6.12.1"),
        ),
        (
            side(("rpm:./kernel-core-6.11.4.rpm", "6.11.4-301.fc41")),
            side(("pkg:./linux-6.12.1.pkg.tar.zst", "6.12.1-arch1-1")),
            "6.12.1 against 6.11.4",
            ("6.11.4", "6.12.1"),
        ),
        (side(K61), side(K61), "6.1.192-2 against itself", ("base", "other")),
        (
            side(K61),
            side(K61, "'+cmdline:hash_pointers=always page_poison=1'"),
            "6.1.192-2 with hash_pointers=always page_poison=1 against 6.1.192-2 without",
            ("without", "with"),
        ),
    ],
)
def test_two_kernels_are_named_by_what_differs(
    base: KernelRuns, other: KernelRuns, sentence: str, columns: tuple[str, str]
) -> None:
    found = side_names([base, other])
    assert (found.against(), found.columns) == (sentence, columns)


def test_variants_of_one_kernel_have_names_of_their_own() -> None:
    clocks = ("+cmdline:clocksource=acpi_pm", "+cmdline:clocksource=hpet")
    found = side_names([side(K612), *(side(K612, clock) for clock in clocks)])
    assert found.columns == ("without", "acpi_pm", "hpet")
    assert found.names == (
        "6.12.117-1~deb12u1 without",
        "6.12.117-1~deb12u1 with clocksource=acpi_pm",
        "6.12.117-1~deb12u1 with clocksource=hpet",
    )


@pytest.mark.parametrize("form", ["text", "mail", "markdown", "html", "ktap", "junit"])
def test_a_boot_parameter_is_named_in_every_form(form: str) -> None:
    plain = report()
    (compared,) = plain.others
    base = msgspec.structs.replace(plain.base, spec=K612[0], release=K612[1])
    other = msgspec.structs.replace(
        compared.side, spec=f"{K612[0]} +cmdline:psi=0", release=K612[1]
    )
    compared = msgspec.structs.replace(compared, side=other)
    found = msgspec.structs.replace(plain, base=base, others=(compared,))
    text = " ".join(FORMS[form].render(stored("compare", found)).split())
    assert SAME_PSI in text.replace("\\~", "~")


@pytest.mark.parametrize(
    ("base", "other", "options", "words"),
    [
        (K61, side(K612), ["CONFIG_A"] * 437, "version, config (437 options)"),
        (K61, side(NEXT_K61), [], "package version"),
        (K61, side(K61, "+cmdline:psi=0"), [], "boot parameters"),
        (TREE, side(TREE, "+./fix.patch"), None, "patches"),
        (TREE, side(TREE, "+CONFIG_PSI=n"), None, "config"),
        (
            TREE,
            side(TREE, "+CONFIG_PSI=n"),
            ["CONFIG_PSI", "CONFIG_CC_VERSION_TEXT"],
            "config (1 option: CONFIG_PSI), compiler",
        ),
        (TREE, side(TREE, "+shuffle:1"), [], "how it is built"),
        (TREE, side(TREE, "+LLVM=1"), None, "variables of make"),
        (K612, side(RT), None, "release"),
        (K61, side(K61), [], "nothing: it is the same kernel"),
        (
            TREE,
            side(TREE, "+CONFIG_PSI=n"),
            [],
            "nothing: the config is the same, although changes of it were asked for",
        ),
    ],
)
def test_what_differs_is_in_words(
    base: tuple[str, str], other: KernelRuns, options: list[str] | None, words: str
) -> None:
    assert differences(side(base), other, options) == words


def test_a_kernel_alone_is_named_by_its_package_or_its_release_and_its_changes() -> None:
    assert kernel_name(f"{K612[0]} +cmdline:psi=0", K612[1]) == "6.12.117-1~deb12u1 with psi=0"
    assert kernel_name(*K612) == "6.12.117-1~deb12u1"
    assert kernel_name("image:/boot/vmlinuz +cmdline:psi=0", "6.12.9") == "6.12.9 with psi=0"


@pytest.mark.parametrize("form", FORMS)
def test_two_packages_of_one_version_are_two_kernels_in_every_form(form: str) -> None:
    plain = report()
    (compared,) = plain.others
    base = msgspec.structs.replace(plain.base, spec=K61[0], release=K61[1])
    other = msgspec.structs.replace(compared.side, spec=NEXT_K61[0], release=NEXT_K61[1])
    compared = msgspec.structs.replace(compared, side=other)
    found = msgspec.structs.replace(plain, base=base, others=(compared,))
    text = FORMS[form].render(stored("compare", found))
    assert "6.1.192-2" in text
    assert "6.1.192-3" in text
    assert "6.1.192 " not in text


def test_two_kernels_never_have_one_name() -> None:
    a, b = ("tree:a", "6.12.0"), ("tree:b", "6.12.0")
    patched = KernelRuns("tree:a +patch-6.12.1.patch", "", "6.12.1", ())
    names = side_names([side(a), patched, side(b)]).names
    assert names == ("a without", "a with patch-6.12.1.patch", "b")
    assert side_names([side(a), side(("tree:a", ""))]).names == ("a 6.12.0", "a")


def test_what_is_not_known_is_no_difference_and_an_order_is_one() -> None:
    failed = KernelRuns("image:/tmp/vmlinux", "", "", ())
    assert differences(side(K61), failed, None) == "source"
    one, two = (side(TREE, f"+{a}.patch +{b}.patch") for a, b in ("fg", "gf"))
    assert differences(one, two, None) == "the order of changes"
