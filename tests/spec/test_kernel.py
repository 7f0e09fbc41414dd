# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel specs: what their texts mean, and what is said about texts that mean nothing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.spec.errors import UserError
from kdelta.spec.kernel import DebSpec, ImageSpec, KernelSpec, parse_kernel_spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("deb:linux-image-cloud-amd64", DebSpec("linux-image-cloud-amd64")),
        ("deb:linux-image-6.12.9+bpo-amd64", DebSpec("linux-image-6.12.9+bpo-amd64")),
        (
            "deb:linux-image-amd64=1:6.1.99-1~deb11u1",
            DebSpec("linux-image-amd64", "1:6.1.99-1~deb11u1"),
        ),
        ("image:/boot/vmlinuz", ImageSpec("/boot/vmlinuz")),
        ("image:a b:c", ImageSpec("a b:c")),
        (
            "image:arch/x86/boot/bzImage,modules=/tmp/m",
            ImageSpec("arch/x86/boot/bzImage", "/tmp/m"),
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
        ("rpm:kernel-core", "unknown scheme 'rpm'", "deb:PACKAGE"),
        ("linux-image-amd64", "not a kernel spec", "write deb:linux-image-amd64"),
        ("./bzImage", "not a kernel spec", "write image:./bzImage"),
        ("tree:/usr/src/linux", "not supported yet", "image:PATH"),
        ("git:linux@v6.12", "not supported yet", "image:PATH"),
        ("+CONFIG_PREEMPT=y", "not supported yet", "deb:PACKAGE"),
        ("deb:", "not a package name: ''", "apt-cache search"),
        ("deb:--print-uris", "not a package name", "apt-cache search"),
        ("deb:Linux", "not a package name", "apt-cache search"),
        ("deb:linux-image-amd64=", "not a version: ''", "apt-cache policy linux-image-amd64"),
        ("deb:linux-image-amd64=-o", "not a version", "apt-cache policy"),
        ("image:", "no path", "image:/boot"),
        ("image:/vmlinuz,modules=", "no folder", "modules="),
        ("deb:a\nb", "not a kernel spec", "one line"),
    ],
)
def test_what_is_no_spec(text: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_kernel_spec(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


@given(st.sampled_from(["", "deb:", "image:", "tree:"]), st.text())
def test_any_text_is_a_spec_or_the_users_slip(scheme: str, rest: str) -> None:
    try:
        spec = parse_kernel_spec(scheme + rest)
    except UserError:
        return
    assert str(spec) == scheme + rest


def test_json_tells_the_schemes_apart() -> None:
    for spec in (DebSpec("linux-image-amd64", "1"), ImageSpec("x")):
        assert msgspec.json.decode(msgspec.json.encode(spec), type=DebSpec | ImageSpec) == spec
