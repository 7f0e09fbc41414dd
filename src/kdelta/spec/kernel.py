# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel specs: the text that says how to obtain a kernel, and what it means.

str() of a spec is its text, which parses to an equal spec.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from kdelta.spec.change import Change, CmdlineChange, RelinkChange, join_changes, split_changes
from kdelta.spec.errors import UserError
from kdelta.spec.meant import IMAGE_NAME, PACKAGE_FILE, meant_by

FORMS = (
    "./PATH (a source tree), git:PATH@REV (a commit), deb:PACKAGE (a distribution's kernel), "
    "image:FILE, or another that --help lists"
)
MODULES_WORD = ",modules="

# Debian policy 5.6.1 and 5.6.12: what a package name and a version may consist of. A word that
# starts with "-" would be taken for an option by apt, and neither pattern lets one through.
PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
PACKAGE_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+:~-]*")

# Debian policy 5.6.8.
ARCHITECTURE = re.compile(r"[a-z0-9][a-z0-9-]*")

SUITE = re.compile(r"[a-z][a-z0-9-]*")
"""A release of a distribution, as its archive calls it: bookworm, sid."""

_IN_REPOSITORY = re.compile(r"([\w][\w.+-]*)(?:=([\w.:~^+-]+))?@(.+)")
"""NAME[=VERSION]@REPOSITORY of rpm and pacman; no name has a slash, as paths and addresses do."""

_EXAMPLES = {
    "rpm": ("kernel-core-VERSION.rpm,kernel-modules-core-VERSION.rpm", "REPOSITORY"),
    "pkg": ("linux-VERSION.pkg.tar.zst", "MIRROR/core/os/x86_64/core.db"),
}

_GLUED = re.compile(r"(deb(?:-src)?:.+?)(\+(?:(?:order|d?shuffle|align|cmdline):.+|sections))")
"""A package with a change after it, as no package is called."""


class KernelSpecError(UserError):
    """A word that is no kernel spec, and has no scheme of one."""


class DebSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="deb"):
    """A binary kernel package of a Debian-like distribution, for the architecture that Debian calls
    so; None is the newest version, and the architecture and the release (suite) of this host.
    """

    package: str
    version: str | None = None
    architecture: str | None = None
    changes: tuple[CmdlineChange, ...] = ()
    suite: str | None = None

    def __str__(self) -> str:
        architecture = f":{self.architecture}" if self.architecture else ""
        text = f"deb:{self.package}{architecture}{_version_and_suite(self)}"
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
        text = f"image:{self.path}" + (f"{MODULES_WORD}{self.modules}" if self.modules else "")
        return join_changes(text, self.changes)


class FilesSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="package-files"):
    """A kernel in package files of another package manager than dpkg: the paths as the user wrote
    them, or addresses. `kind` is "rpm" or "pkg".
    """

    kind: str
    places: tuple[str, ...]
    changes: tuple[CmdlineChange, ...] = ()

    def __str__(self) -> str:
        return join_changes(f"{self.kind}:{','.join(self.places)}", self.changes)


class RepositorySpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="package"):
    """A kernel package in a repository of rpm or pacman, which the user names by its address or its
    folder; no version is the newest. `kind` is "rpm" or "pkg".
    """

    kind: str
    package: str
    repository: str
    version: str | None = None
    changes: tuple[CmdlineChange, ...] = ()

    def __str__(self) -> str:
        version = f"={self.version}" if self.version else ""
        return join_changes(f"{self.kind}:{self.package}{version}@{self.repository}", self.changes)


class TreeSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="tree"):
    """A source tree as it stands: a folder, or a packed archive of one; the path is as the user
    wrote it. `changes` are made in their order, here and below.
    """

    path: str
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        return join_changes(f"tree:{self.path}", self.changes)


class GitSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="git"):
    """One commit of a git repository: a tag, a branch, a hash, or what else git takes for one."""

    path: str
    revision: str
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        return join_changes(f"git:{self.path}@{self.revision}", self.changes)


class DebSrcSpec(msgspec.Struct, frozen=True, tag_field="scheme", tag="deb-src"):
    """The kernel source that a package of a Debian-like distribution holds, such as
    linux-source-6.12; None is the newest version, and the release (suite) of this host.
    """

    package: str
    version: str | None = None
    changes: tuple[Change, ...] = ()
    suite: str | None = None

    def __str__(self) -> str:
        return join_changes(f"deb-src:{self.package}{_version_and_suite(self)}", self.changes)


def _version_and_suite(spec: DebSpec | DebSrcSpec) -> str:
    version = f"={spec.version}" if spec.version else ""
    return version + (f"@{spec.suite}" if spec.suite else "")


SourceSpec = TreeSpec | GitSpec | DebSrcSpec
BuiltSpec = DebSpec | ImageSpec | FilesSpec | RepositorySpec
"""A kernel that is built already: nothing but its boot parameters can be changed."""

KernelSpec = BuiltSpec | SourceSpec
AnySpec = TypeVar("AnySpec", bound=KernelSpec)


def parse_kernel_spec(text: str) -> KernelSpec:
    """Reads a kernel spec's text; raises UserError, with what is understood, if it is none.

    Changes may follow, as in a shell: tree:/src/linux +CONFIG_A=y '+# CONFIG_B is not set'
    """
    if "\0" in text or "\n" in text:
        raise UserError(f"not a kernel spec: {text!r}", "it must be one line of text")
    if text.startswith("+"):
        raise UserError(f"a change without a kernel: {text}", f"write the kernel first: {FORMS}")
    base, changes = split_changes(text)
    _must_be_apart(base)
    return with_changes(_parse_base(base), changes)


def _must_be_apart(base: str) -> None:
    """UserError where a change of a relink follows a package without a blank; both are known."""
    if match := _GLUED.fullmatch(base):
        apart = f"{match[1]} {match[2]}"
        # Of a package that is built already this raises what is to be done.
        parse_kernel_spec(apart)
        raise UserError(f"no blank before {match[2]} in {base!r}", f"write {apart}")


def with_changes(spec: KernelSpec, changes: Sequence[Change]) -> KernelSpec:
    """The spec with these changes after its own; UserError for a kernel that is built already, and
    changes other than its boot parameters.
    """
    if isinstance(spec, BuiltSpec):
        refused = next((one for one in changes if not isinstance(one, CmdlineChange)), None)
        if refused is not None:
            raise UserError(
                f"{spec} is built already and cannot be changed: {refused}", _how_to(refused)
            )
    return msgspec.structs.replace(spec, changes=(*spec.changes, *changes))


def require_relinkable(spec: str, option: str) -> None:
    """Raise UserError for a kernel that cannot be linked in another order, with what to ask for.
    option: that needs it.
    """
    kernel = parse_kernel_spec(spec)
    if isinstance(kernel, BuiltSpec):
        raise UserError(
            f"{kernel} is built already: {option} cannot link it in another order",
            f"name its source and its config: PATH +FILE.config +sections. Or leave {option} out",
        )
    if not any(isinstance(change, RelinkChange) for change in kernel.changes):
        raise UserError(
            f"{kernel} is not built with a section for each function: {option} cannot move them",
            f"append +sections: {kernel} +sections",
        )


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
    scheme, colon, rest = text.partition(":")
    if colon and scheme in _PARSERS:
        return _PARSERS[scheme](text, rest)
    if _is_path(text):
        return TreeSpec(text)
    raise _unknown(text, scheme if colon else None)


def _is_path(text: str) -> bool:
    is_binary = IMAGE_NAME.fullmatch(text.rpartition("/")[2]) or any(
        pattern.search(text) for pattern in PACKAGE_FILE.values()
    )
    return not is_binary and (
        text.startswith((".", "~", "/")) or ("/" in text and ":" not in text.partition("/")[0])
    )


def _parse_tree(text: str, rest: str) -> TreeSpec:
    if not rest:
        raise UserError(f"no path in {text!r}", "for example tree:/usr/src/linux")
    return TreeSpec(rest)


def _parse_git(text: str, rest: str) -> GitSpec:
    if "://" in rest or rest.startswith("//"):
        raise _unknown(text, None)
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
    base, suite = _parse_suite(text, rest)
    name, equals, version = base.partition("=")
    package, colon, architecture = name.partition(":")
    if colon and not ARCHITECTURE.fullmatch(architecture):
        raise UserError(
            f"not an architecture: {architecture!r} in {text!r}",
            "for example deb:linux-image-armmp:armhf",
        )
    found = _parse_package(text, f"{package}{equals}{version}")
    return DebSpec(*found, architecture or None, suite=suite)


def _parse_deb_src(text: str, rest: str) -> DebSrcSpec:
    base, suite = _parse_suite(text, rest)
    return DebSrcSpec(*_parse_package(text, base), suite=suite)


def _parse_suite(text: str, rest: str) -> tuple[str, str | None]:
    base, at, suite = rest.partition("@")
    if at and not SUITE.fullmatch(suite):
        raise UserError(
            f"not a release of a distribution: {suite!r} in {text!r}",
            "for example deb:linux-image-cloud-amd64@bookworm",
        )
    return base, suite if at else None


def _parse_package(text: str, rest: str) -> tuple[str, str | None]:
    package, equals, version = rest.partition("=")
    if not PACKAGE_NAME.fullmatch(package):
        raise UserError(
            f"not a package name: {package!r} in {text!r}",
            "for example deb:linux-image-cloud-amd64",
        )
    if equals and not PACKAGE_VERSION.fullmatch(version):
        raise UserError(
            f"not a version: {version!r} in {text!r}",
            f"without a version the newest is taken: {text.partition('=')[0]}",
        )
    return package, version if equals else None


def _parse_package_of(text: str, rest: str) -> FilesSpec | RepositorySpec:
    """Reads rpm: and pkg:, which name files, or a package and its repository."""
    kind = text.partition(":")[0]
    if match := _IN_REPOSITORY.fullmatch(rest):
        package, version, repository = match.groups()
        return RepositorySpec(kind, package, repository, version)
    places = tuple(rest.split(","))
    odd = next((one for one in places if not PACKAGE_FILE[kind].search(one)), None)
    if odd is not None:
        example, repository = _EXAMPLES[kind]
        raise UserError(
            f"cannot use {odd!r} in {text!r}: it is no package file",
            f"write {kind}:{example}, or {kind}:NAME@{repository}",
        )
    return FilesSpec(kind, places)


def _parse_image(text: str, rest: str) -> ImageSpec:
    path, word, modules = rest.partition(MODULES_WORD)
    if not path:
        raise UserError(f"no path in {text!r}", "for example image:/boot/vmlinuz")
    if word and not modules:
        raise UserError(f"no folder after modules= in {text!r}", "for example ,modules=/")
    return ImageSpec(path, modules if word else None)


_PARSERS: dict[str, Callable[[str, str], KernelSpec]] = {
    "deb": _parse_deb,
    "deb-src": _parse_deb_src,
    "git": _parse_git,
    "image": _parse_image,
    "pkg": _parse_package_of,
    "rpm": _parse_package_of,
    "tree": _parse_tree,
}
"""By scheme, what reads the text that has it and the part after its colon."""


def _unknown(text: str, scheme: str | None) -> UserError:
    if meant := meant_by(text):
        return KernelSpecError(f"not a kernel spec: {text!r}", meant.advice, (text, meant.right))
    if scheme is not None and re.fullmatch(r"[A-Za-z-]+", scheme):
        near = difflib.get_close_matches(scheme, _PARSERS, n=1, cutoff=0.5)
        return UserError(
            f"unknown scheme {scheme!r} in kernel spec {text!r}",
            f"a kernel is {FORMS}",
            (text, f"{near[0]}:{text.partition(':')[2]}") if near else None,
        )
    return KernelSpecError(f"not a kernel spec: {text!r}", f"a kernel is {FORMS}")
