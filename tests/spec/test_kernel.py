# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel specs: what their texts mean, and what is reported about texts that mean nothing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.spec.change import (
    CmdlineChange,
    FileChange,
    OptionChange,
    VariableChange,
)
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import (
    DebSpec,
    DebSrcSpec,
    FilesSpec,
    GitSpec,
    ImageSpec,
    KernelSpec,
    RepositorySpec,
    TreeSpec,
    parameters_of,
    parse_kernel_spec,
    with_changes,
    without_changes,
    without_parameters,
)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("deb:linux-image-cloud-amd64", DebSpec("linux-image-cloud-amd64")),
        ("deb:linux-image-6.12.9+bpo-amd64", DebSpec("linux-image-6.12.9+bpo-amd64")),
        (
            "deb:linux-image-amd64=1:6.1.99-1~deb11u1",
            DebSpec("linux-image-amd64", "1:6.1.99-1~deb11u1"),
        ),
        ("deb:linux-image-armmp:armhf", DebSpec("linux-image-armmp", None, "armhf")),
        ("deb:aa:armhf=1@sid", DebSpec("aa", "1", "armhf", suite="sid")),
        ("deb-src:linux-source@trixie", DebSrcSpec("linux-source", suite="trixie")),
        (
            "deb:linux-image-6.1.0-50-armmp:armhf=1:6.1.176-1",
            DebSpec("linux-image-6.1.0-50-armmp", "1:6.1.176-1", "armhf"),
        ),
        ("image:/boot/vmlinuz", ImageSpec("/boot/vmlinuz")),
        ("image:a b:c", ImageSpec("a b:c")),
        (
            "image:arch/x86/boot/bzImage,modules=/tmp/m",
            ImageSpec("arch/x86/boot/bzImage", "/tmp/m"),
        ),
        ("rpm:a.rpm", FilesSpec("rpm", ("a.rpm",))),
        (
            "rpm:/a b/kernel-core.rpm,https://example.org/kernel-modules-core.rpm",
            FilesSpec(
                "rpm", ("/a b/kernel-core.rpm", "https://example.org/kernel-modules-core.rpm")
            ),
        ),
        (
            "pkg:linux-6.9-1-x86_64.pkg.tar.zst",
            FilesSpec("pkg", ("linux-6.9-1-x86_64.pkg.tar.zst",)),
        ),
        ("rpm:kernel-core@/srv/os", RepositorySpec("rpm", "kernel-core", "/srv/os")),
        (
            "rpm:kernel=6.12.0-1.el10~1^2@https://me@example.org/os",
            RepositorySpec("rpm", "kernel", "https://me@example.org/os", "6.12.0-1.el10~1^2"),
        ),
        (
            "pkg:linux-lts@https://example.org/core/os/x86_64/core.db",
            RepositorySpec("pkg", "linux-lts", "https://example.org/core/os/x86_64/core.db"),
        ),
        (
            "rpm:a@b +cmdline:nosmt",
            RepositorySpec("rpm", "a", "b", None, (CmdlineChange(("nosmt",)),)),
        ),
        ("tree:/usr/src/linux", TreeSpec("/usr/src/linux")),
        ("tree:it's my linux: 6", TreeSpec("it's my linux: 6")),
        ("git:/src/a@b/linux@v6.12", GitSpec("/src/a@b/linux", "v6.12")),
        ("git:linux@@", GitSpec("linux", "@")),
        ("git:linux@me/fix~3", GitSpec("linux", "me/fix~3")),
        ("git:linux@HEAD@{2 days ago}", GitSpec("linux", "HEAD@{2 days ago}")),
        ("deb-src:linux-source-6.12=6.12.9-1", DebSrcSpec("linux-source-6.12", "6.12.9-1")),
        (
            "tree:my linux +CONFIG_A=y '+KCFLAGS=-O3 -g' +fix.patch",
            TreeSpec(
                "my linux",
                (
                    OptionChange("CONFIG_A", "y"),
                    VariableChange("KCFLAGS", "-O3 -g"),
                    FileChange("fix.patch"),
                ),
            ),
        ),
        ("'tree:/a +b' +c.config", TreeSpec("/a +b", (FileChange("c.config"),))),
        (
            "deb:aa:armhf=1 +cmdline:nosmt '+cmdline:a=1 b'",
            DebSpec("aa", "1", "armhf", (CmdlineChange(("nosmt",)), CmdlineChange(("a=1", "b")))),
        ),
        (
            "image:/v,modules=/m '+cmdline:a=\"b c\"'",
            ImageSpec("/v", "/m", (CmdlineChange(('a="b c"',)),)),
        ),
    ],
)
def test_spec_and_back(text: str, spec: KernelSpec) -> None:
    assert parse_kernel_spec(text) == spec
    assert str(spec) == text


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "not a kernel spec", "deb:PACKAGE"),
        ("apk:linux-virt", "unknown scheme 'apk'", "deb:PACKAGE"),
        ("linux-image-amd64", "not a kernel spec", "write deb:linux-image-amd64"),
        ("./bzImage", "not a kernel spec", "write image:./bzImage"),
        ("+CONFIG_PREEMPT=y", "a change without a kernel", "deb:PACKAGE"),
        ("linux", "not a kernel spec", "./PATH"),
        ("linux-source-6.12", "not a kernel spec", "write deb-src:linux-source-6.12"),
        ("/boot/vmlinuz-6.12", "not a kernel spec", "write image:/boot/vmlinuz-6.12"),
        ("tree:", "no path", "tree:/usr"),
        ("git:linux", "no revision", "git:linux@HEAD"),
        ("git:linux@", "no revision", "git:linux@HEAD"),
        ("git:@v6.12", "no revision", "@HEAD"),
        ("git:linux@--all", "not a revision", "@v6.12"),
        ("deb-src:Linux", "not a package name", "for example deb:linux-image"),
        ("deb:linux-image-amd64 +fix.patch", "cannot be changed: +fix.patch", "deb-src:"),
        ("image:/vmlinuz +CONFIG_A=y", "cannot be changed: +CONFIG_A=y", "deb-src:"),
        ("tree:/x '+fix.patch", "No closing quotation", "quotes"),
        ("tree:/x +a.patch b.patch", "not a change: 'b.patch'", "CONFIG_X=y"),
        ("tree:/x +a.patch +", "not a change: '+'", "CONFIG_X=y"),
        ("deb:", "not a package name: ''", "for example deb:linux-image"),
        ("deb:--print-uris", "not a package name", "for example deb:linux-image"),
        ("deb:Linux", "not a package name", "for example deb:linux-image"),
        (
            "deb:linux-image-amd64=",
            "not a version: ''",
            "newest is taken: deb:linux-image-amd64",
        ),
        ("deb:linux-image-armmp:", "not an architecture: ''", "deb:linux-image-armmp:armhf"),
        ("deb:linux-image-armmp@", "not a release of a distribution: ''", "@bookworm"),
        ("deb-src:linux-source@-x", "not a release of a distribution: '-x'", "@bookworm"),
        ("deb:linux-image-armmp:--x", "not an architecture", "deb:linux-image-armmp:armhf"),
        ("deb:linux-image-amd64=-o", "not a version", "newest is taken: deb:linux-image-amd64"),
        ("image:", "no path", "image:/boot"),
        ("rpm:", "it is no package file", "write rpm:kernel-core-VERSION.rpm"),
        ("rpm:a.rpm,b", "cannot use 'b'", "rpm:NAME@REPOSITORY"),
        ("pkg:linux", "cannot use 'linux'", "pkg:NAME@MIRROR/core/os/x86_64/core.db"),
        ("rpm:a.rpm +fix.patch", "cannot be changed: +fix.patch", "deb-src:"),
        ("./kernel-core-6.rpm", "not a kernel spec", "write rpm:./kernel-core-6.rpm"),
        ("linux-6-x86_64.pkg.tar.zst", "not a kernel spec", "write pkg:linux-6-x86_64.pkg.tar.zst"),
        ("image:/vmlinuz,modules=", "no folder", "modules="),
        ("deb:a\nb", "not a kernel spec", "one line"),
        ("deb:linux-image-amd64 +order:a", "cannot be changed: +order:a", "PATH +FILE.config"),
        ("deb:linux-image-amd64+order:/a", "cannot be changed: +order:/a", "PATH +FILE.config"),
        ("deb:linux-image-amd64=6.1+sections", "=6.1 is built already", "PATH +FILE.config"),
        ("deb:linux-image-amd64+align:65", "not an alignment", "64"),
        ("deb-src:linux-source-6.1+shuffle:2", "no blank before +shuffle:2", "6.1 +shuffle:2"),
        ("deb:linux-image-amd64+cmdline:nosmt", "no blank before", "-amd64 +cmdline:nosmt"),
        ("deb:aa +cmdline:nosmt +a.patch", "cannot be changed: +a.patch", "but +cmdline: need"),
        ("deb:aa +mitigations=off", "not a change", "+cmdline:mitigations=off"),
    ],
)
def test_what_is_no_spec(text: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_kernel_spec(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


@given(st.sampled_from(["", "deb:", "image:", "tree:", "rpm:", "pkg:", "rpm:a@"]), st.text())
def test_any_text_is_a_spec_or_the_users_slip(scheme: str, rest: str) -> None:
    try:
        spec = parse_kernel_spec(scheme + rest)
    except UserError:
        return
    assert parse_kernel_spec(str(spec)) == spec


@pytest.mark.parametrize("path", ["/usr/src/linux", "~/linux", ".", "./linux", "../a b", "src/x"])
def test_a_path_is_a_tree(path: str) -> None:
    assert parse_kernel_spec(path) == TreeSpec(path)
    assert parse_kernel_spec(f"{path} +x.patch") == TreeSpec(path, (FileChange("x.patch"),))


PATHS = st.text(st.characters(exclude_characters="\0\n", codec="utf-8"), min_size=1)
PARAMETERS = st.lists(
    st.from_regex(r'x[!#-~]*(="[ !#-~]*")?[!#-~]*', fullmatch=True).filter(
        lambda word: not word.partition("=")[2].startswith("'")
    ),
    min_size=1,
    max_size=3,
).map(lambda words: CmdlineChange(tuple(words)))
CHANGES = st.lists(
    st.one_of(
        st.builds(OptionChange, st.just("CONFIG_A"), st.sampled_from(["y", "n", "0x1f", '"a b"'])),
        st.builds(VariableChange, st.just("KCFLAGS"), PATHS.filter(lambda t: t not in "ymn")),
        PATHS.map(lambda path: FileChange(f"./{path}.patch")),
        PATHS.map(lambda path: FileChange(f"./{path}.config")),
        PARAMETERS,
    ),
    max_size=4,
).map(tuple)


@given(
    st.one_of(
        st.builds(TreeSpec, PATHS, CHANGES),
        st.builds(GitSpec, PATHS, st.sampled_from(["v6.12", "@", "HEAD@{1}", "a/b"]), CHANGES),
        st.builds(DebSrcSpec, st.just("linux-source-6.1"), st.sampled_from([None, "1:2"]), CHANGES),
        st.builds(
            ImageSpec,
            PATHS.filter(lambda path: "," not in path),
            st.none(),
            st.lists(PARAMETERS, max_size=2).map(tuple),
        ),
        st.builds(
            DebSpec,
            st.just("aa"),
            st.none(),
            st.none(),
            st.lists(PARAMETERS, max_size=2).map(tuple),
        ),
    )
)
def test_a_specs_text_parses_to_an_equal_spec(spec: KernelSpec) -> None:
    assert parse_kernel_spec(str(spec)) == spec


def test_boot_parameters_are_apart_from_what_is_built() -> None:
    spec = parse_kernel_spec("tree:/x +cmdline:a=1 +a.patch '+cmdline:b c'")
    assert parameters_of(spec) == ("a=1", "b", "c")
    assert str(without_parameters(spec)) == "tree:/x +a.patch"
    assert without_changes(parse_kernel_spec("deb:aa +cmdline:b")) == DebSpec("aa")


def test_changes_are_made_in_their_order() -> None:
    spec = parse_kernel_spec("tree:/x +a.patch")
    longer = with_changes(spec, [FileChange("b.patch")])
    assert str(longer) == "tree:/x +a.patch +b.patch"
    assert without_changes(longer) == TreeSpec("/x")


def test_json_tells_the_schemes_apart() -> None:
    for spec in (
        DebSpec("linux-image-amd64", "1", None, (CmdlineChange(("a", "b")),)),
        ImageSpec("x"),
        TreeSpec("x", (OptionChange("CONFIG_A", "n"), FileChange("a"))),
        GitSpec("x", "y", (FileChange("a"), VariableChange("CC", "clang"))),
        DebSrcSpec("x"),
    ):
        assert msgspec.json.decode(msgspec.json.encode(spec), type=KernelSpec) == spec
