# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel specs: the text that says how to obtain a kernel, and what it means."""

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from kdelta.spec.change import Change, CmdlineChange, RelinkChange, join_changes, split_changes
from kdelta.spec.errors import UserError

FORMS = (
    "PATH or tree:PATH (a source tree, or an archive of one), git:PATH@REV (a commit), "
    "deb-src:PACKAGE[=VERSION] (a distribution's source), deb:PACKAGE[=VERSION] (its binary "
    "kernel; deb:PACKAGE:armhf one of another architecture) and image:PATH[,modules=FOLDER] (a "
    "bzImage, vmlinux, zImage or Image)"
)
MODULES_WORD = ",modules="

# Debian policy 5.6.1 and 5.6.12: what a package name and a version may consist of. A word that
# starts with "-" would be taken for an option by apt, and neither pattern lets one through.
PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
PACKAGE_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+:~-]*")

# Debian policy 5.6.8.
ARCHITECTURE = re.compile(r"[a-z0-9][a-z0-9-]*")

_GLUED = re.compile(r"(deb(?:-src)?:.+?)(\+(?:(?:order|shuffle|align|cmdline):.+|sections))")
"""A package with a change after it, as no package is called."""


class DebSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="deb"):
    """A binary kernel package of a Debian-like distribution, for the architecture that Debian calls
    so; None is the newest version, and the architecture of this host.
    """

    package: str
    version: str | None = None
    architecture: str | None = None
    changes: tuple[CmdlineChange, ...] = ()

    def __str__(self) -> str:
        """The spec's text, which parses to an equal spec."""
        architecture = f":{self.architecture}" if self.architecture else ""
        text = f"deb:{self.package}{architecture}" + (f"={self.version}" if self.version else "")
        return join_changes(text, self.changes)


class ImageSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="image"):
    """A kernel image that is there already, and the folder of its modules if it has any.

    Both paths are as the user wrote them; `modules` is a folder that holds lib/modules/RELEASE, or
    RELEASE's own folder.
    """

    path: str
    modules: str | None = None
    changes: tuple[CmdlineChange, ...] = ()

    def __str__(self) -> str:
        """The spec's text, which parses to an equal spec."""
        text = f"image:{self.path}" + (f"{MODULES_WORD}{self.modules}" if self.modules else "")
        return join_changes(text, self.changes)


class TreeSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="tree"):
    """A source tree as it stands: a folder, or a packed archive of one; the path is as the user
    wrote it. `changes` are made in their order, here and below.
    """

    path: str
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        """The spec's text, which parses to an equal spec."""
        return join_changes(f"tree:{self.path}", self.changes)


class GitSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="git"):
    """One commit of a git repository: a tag, a branch, a hash, or what else git takes for one."""

    path: str
    revision: str
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        """The spec's text, which parses to an equal spec."""
        return join_changes(f"git:{self.path}@{self.revision}", self.changes)


class DebSrcSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="deb-src"):
    """The kernel source that a package of a Debian-like distribution holds, such as
    linux-source-6.12; None is the newest version.
    """

    package: str
    version: str | None = None
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        """The spec's text, which parses to an equal spec."""
        text = f"deb-src:{self.package}" + (f"={self.version}" if self.version else "")
        return join_changes(text, self.changes)


SourceSpec = TreeSpec | GitSpec | DebSrcSpec
KernelSpec = DebSpec | ImageSpec | SourceSpec
AnySpec = TypeVar("AnySpec", bound=KernelSpec)

_IMAGE_NAME = re.compile(r"(?:bz|z|u|)Image(?:[.-].*)?|vmlinu[xz](?:[.-].*)?|.*\.efi")


def parse_kernel_spec(text: str) -> KernelSpec:
    """Reads a kernel spec's text; raises UserError, with what is understood, if it is none.

    Changes may follow, as in a shell: tree:/src/linux +CONFIG_A=y '+# CONFIG_B is not set'
    """
    if "\0" in text or "\n" in text:
        raise UserError(f"not a kernel spec: {text!r}", "it must be one line of text")
    if text.startswith("+"):
        raise UserError(
            f"a change without a kernel: {text}", f"write the kernel first; known: {FORMS}"
        )
    base, changes = split_changes(text)
    _must_be_apart(base)
    return with_changes(_parse_base(base), changes)


def _must_be_apart(base: str) -> None:
    """UserError where a change of a relink follows a package without a blank; both are known."""
    match = _GLUED.fullmatch(base)
    if match is None:
        return
    apart = f"{match[1]} {match[2]}"
    parse_kernel_spec(apart)  # of a package that is built already this raises what is to be done
    raise UserError(f"no blank before {match[2]} in {base!r}", f"write {apart}")


def with_changes(spec: KernelSpec, changes: Sequence[Change]) -> KernelSpec:
    """The spec with these changes after its own; UserError for a kernel that is built already, and
    changes other than its boot parameters.
    """
    if not changes:
        return spec
    if isinstance(spec, DebSpec | ImageSpec):
        refused = next((one for one in changes if not isinstance(one, CmdlineChange)), None)
        if refused is not None:
            raise UserError(
                f"{spec} is built already and cannot be changed: {refused}", _how_to(refused)
            )
    return msgspec.structs.replace(spec, changes=(*spec.changes, *changes))


def _how_to(change: Change) -> str:
    if not isinstance(change, RelinkChange):
        return (
            "changes but +cmdline: need a source: PATH, git:PATH@REV or "
            "deb-src:linux-source-VERSION"
        )
    return (
        "a relink needs objects in which each function is a section of its own. Name the source "
        f"and the config instead: PATH +FILE.config {change}; kdelta builds them so, in a folder "
        "of its own"
    )


def without_changes(spec: KernelSpec) -> KernelSpec:
    """The spec of the kernel that the changes are changes of."""
    return msgspec.structs.replace(spec, changes=())


def parameters_of(spec: KernelSpec) -> tuple[str, ...]:
    """The boot parameters that a spec asks for, in their order."""
    return tuple(
        word for one in spec.changes if isinstance(one, CmdlineChange) for word in one.parameters
    )


def without_parameters(spec: AnySpec) -> AnySpec:
    """The spec of the kernel that is booted with them."""
    changes = tuple(one for one in spec.changes if not isinstance(one, CmdlineChange))
    return msgspec.structs.replace(spec, changes=changes)


def _parse_base(text: str) -> KernelSpec:
    match text.partition(":"):
        case "deb", ":", rest:
            return _parse_deb(text, rest)
        case "deb-src", ":", rest:
            return DebSrcSpec(*_parse_package(text, rest))
        case "image", ":", rest:
            return _parse_image(text, rest)
        case "tree", ":", "":
            raise UserError(f"no path in {text!r}", "for example tree:/usr/src/linux")
        case "tree", ":", rest:
            return TreeSpec(rest)
        case "git", ":", rest:
            return _parse_git(text, rest)
        case _ if _is_path(text):
            return TreeSpec(text)
        case scheme, colon, _:
            raise _unknown(text, scheme if colon else None)


def _is_path(text: str) -> bool:
    if _IMAGE_NAME.fullmatch(text.rpartition("/")[2]):
        return False
    return text.startswith((".", "~", "/")) or ("/" in text and ":" not in text.partition("/")[0])


def _parse_git(text: str, rest: str) -> GitSpec:
    # A revision may end in @{...}, and @ alone is HEAD.
    match = re.fullmatch(r"(.+?)@(@|[^@]+(?:@\{[^}]*\})?|@\{[^}]*\})", rest)
    if match is None:
        path = rest.rstrip("@") or "PATH"
        raise UserError(
            f"no revision in {text!r}",
            f"write git:{path}@HEAD, or tree:{path} for the files as they stand",
        )
    path, revision = match.groups()
    if revision.startswith("-"):
        raise UserError(f"not a revision: {revision!r} in {text!r}", "for example @v6.12")
    return GitSpec(path, revision)


def _parse_deb(text: str, rest: str) -> DebSpec:
    name, equals, version = rest.partition("=")
    package, colon, architecture = name.partition(":")
    if colon and not ARCHITECTURE.fullmatch(architecture):
        raise UserError(
            f"not an architecture: {architecture!r} in {text!r}",
            "for example deb:linux-image-armmp:armhf",
        )
    return DebSpec(*_parse_package(text, f"{package}{equals}{version}"), architecture or None)


def _parse_package(text: str, rest: str) -> tuple[str, str | None]:
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
    return package, version if equals else None


def _parse_image(text: str, rest: str) -> ImageSpec:
    path, word, modules = rest.partition(MODULES_WORD)
    if not path:
        raise UserError(f"no path in {text!r}", "for example image:/boot/vmlinuz")
    if word and not modules:
        raise UserError(f"no folder after modules= in {text!r}", "for example ,modules=/")
    return ImageSpec(path, modules if word else None)


def _unknown(text: str, scheme: str | None) -> UserError:
    if scheme is not None and re.fullmatch(r"[A-Za-z-]+", scheme):
        return UserError(f"unknown scheme {scheme!r} in kernel spec {text!r}", f"known: {FORMS}")
    if PACKAGE_NAME.fullmatch(text) and text.startswith("linux-image"):
        return UserError(f"not a kernel spec: {text!r}", f"for the package write deb:{text}")
    if PACKAGE_NAME.fullmatch(text) and text.startswith("linux-source"):
        return UserError(f"not a kernel spec: {text!r}", f"for the package write deb-src:{text}")
    if _IMAGE_NAME.fullmatch(text.rpartition("/")[2]):
        return UserError(f"not a kernel spec: {text!r}", f"for a kernel image write image:{text}")
    if re.fullmatch(r"[\w.+-]+", text):
        return UserError(
            f"not a kernel spec: {text!r}", f"for a source tree write ./{text}; known: {FORMS}"
        )
    return UserError(f"not a kernel spec: {text!r}", f"known: {FORMS}")
