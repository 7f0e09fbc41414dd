# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel specs: the text that says how to obtain a kernel, and what it means."""

import re

import msgspec

from kdelta.spec.errors import UserError

FORMS = (
    "deb:PACKAGE[=VERSION] (a distribution's binary kernel) and "
    "image:PATH[,modules=FOLDER] (a bzImage or vmlinux)"
)
LATER_SCHEMES = {
    "tree": "building a source tree",
    "git": "building a commit",
}
MODULES_WORD = ",modules="

# Debian policy 5.6.1 and 5.6.12: what a package name and a version may consist of. A word that
# starts with "-" would be taken for an option by apt, and neither pattern lets one through.
PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
PACKAGE_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+:~-]*")


class DebSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="deb"):
    """A binary kernel package of a Debian-like distribution; None is the newest version."""

    package: str
    version: str | None = None

    def __str__(self) -> str:
        """The spec's text, which parses to an equal spec."""
        return f"deb:{self.package}" + (f"={self.version}" if self.version else "")


class ImageSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="image"):
    """A kernel image that is there already, and the folder of its modules if it has any.

    Both paths are as the user wrote them; `modules` is a folder that holds lib/modules/RELEASE, or
    RELEASE's own folder.
    """

    path: str
    modules: str | None = None

    def __str__(self) -> str:
        """The spec's text, which parses to an equal spec."""
        return f"image:{self.path}" + (f"{MODULES_WORD}{self.modules}" if self.modules else "")


KernelSpec = DebSpec | ImageSpec


def parse_kernel_spec(text: str) -> KernelSpec:
    """Reads a kernel spec's text; raises UserError, with what is understood, if it is none."""
    if "\0" in text or "\n" in text:
        raise UserError(f"not a kernel spec: {text!r}", "it must be one line of text")
    if text.startswith("+"):
        raise UserError(
            f"changes on a kernel are not supported yet: {text}",
            f"what is: {FORMS}",
        )
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "deb":
        return _parse_deb(text, rest)
    if colon and scheme == "image":
        return _parse_image(text, rest)
    if colon and scheme in LATER_SCHEMES:
        raise UserError(
            f"{LATER_SCHEMES[scheme]} is not supported yet: {text}",
            f"build it and name the image; what is supported: {FORMS}",
        )
    raise _unknown(text, scheme if colon else None)


def _parse_deb(text: str, rest: str) -> DebSpec:
    package, equals, version = rest.partition("=")
    if not PACKAGE_NAME.fullmatch(package):
        raise UserError(
            f"not a package name: {package!r} in {text!r}",
            "for example deb:linux-image-cloud-amd64; see apt-cache search linux-image",
        )
    if equals and not PACKAGE_VERSION.fullmatch(version):
        raise UserError(
            f"not a version: {version!r} in {text!r}",
            f"apt-cache policy {package} lists the versions there are",
        )
    return DebSpec(package, version if equals else None)


def _parse_image(text: str, rest: str) -> ImageSpec:
    path, word, modules = rest.partition(MODULES_WORD)
    if not path:
        raise UserError(f"no path in {text!r}", "for example image:/boot/vmlinuz")
    if word and not modules:
        raise UserError(f"no folder after modules= in {text!r}", "for example ,modules=/")
    return ImageSpec(path, modules if word else None)


def _unknown(text: str, scheme: str | None) -> UserError:
    if scheme is not None and re.fullmatch(r"[A-Za-z]+", scheme):
        return UserError(f"unknown scheme {scheme!r} in kernel spec {text!r}", f"known: {FORMS}")
    if PACKAGE_NAME.fullmatch(text) and text.startswith("linux-image"):
        return UserError(f"not a kernel spec: {text!r}", f"for the package write deb:{text}")
    if "/" in text or text.startswith("."):
        return UserError(
            f"not a kernel spec: {text!r}",
            f"for a kernel image write image:{text}; source trees are not supported yet",
        )
    return UserError(f"not a kernel spec: {text!r}", f"known: {FORMS}")
