# SPDX-License-Identifier: GPL-2.0-or-later
"""What a word that is no kernel spec was probably meant as; no I/O."""

import re
from typing import NamedTuple

IMAGE_NAME = re.compile(r"(?:bz|z|u|)Image(?:[.-].*)?|vmlinu[xz](?:[.-].*)?|.*\.efi")
PACKAGE_FILE = {
    "rpm": re.compile(r"\.rpm$"),
    "pkg": re.compile(r"\.pkg\.tar(\.(zst|xz|gz|bz2))?$"),
}
VERSION = re.compile(r"(?:linux-|v)?(\d+\.\d+(?:\.\d+)*(?:-rc\d+)?)(?:\.y)?")
"""How people write the version of a kernel; the group has its number."""

_PACKAGE = re.compile(r"linux-(image|source)[a-z0-9+.-]*")
_CHANGE_FILE = re.compile(r"(?:.*/)?[^/]*(?:\.(?:patch|diff|mbox)|config)(?:\.(?:gz|xz|zst|bz2))?")
_ADDRESS = re.compile(
    r"(?:git:)?((?:https?|ftp|git|ssh)://[^@\s]+|[\w.-]+@[\w.-]+:[^@\s]+)(?:@(\S+))?"
)
_ARCHIVE = re.compile(r"\.tar(?:\.\w+)?$")


class Meant(NamedTuple):
    """What a word was probably meant as: what to do about it, and the words to write instead."""

    advice: str
    right: str


def meant_by(text: str) -> Meant | None:
    """Return what such a word was probably meant as; None where that is anyone's guess."""
    if match := _ADDRESS.fullmatch(text):
        return _of_address(match[1], match[2])
    if match := VERSION.fullmatch(text):
        return _of_version(text, match[1])
    if text.endswith(".deb"):
        return _of_deb(text)
    if _CHANGE_FILE.fullmatch(text):
        return Meant(f"a patch or a config is a change: write +{text} after a source", f"+{text}")
    right = _with_scheme(text)
    return Meant(f"write {right}", right) if right else None


def _with_scheme(text: str) -> str:
    """The word with the scheme that its name shows; empty if it shows none."""
    kinds = [kind for kind, pattern in PACKAGE_FILE.items() if pattern.search(text)]
    if kinds:
        return f"{kinds[0]}:{text}"
    if match := _PACKAGE.fullmatch(text):
        return f"{'deb' if match[1] == 'image' else 'deb-src'}:{text}"
    return f"image:{text}" if IMAGE_NAME.fullmatch(text.rpartition("/")[2]) else ""


def _of_address(address: str, revision: str | None) -> Meant:
    name = address.rstrip("/").rpartition("/")[2]
    if _ARCHIVE.search(name):
        return Meant(f"no source is downloaded; first: curl -LO {address}", f"./{name}")
    folder = name.removesuffix(".git")
    right = f"git:{folder}@{revision or 'HEAD'}"
    return Meant(f"no repository is fetched; first: git clone {address} {folder}", right)


def _of_deb(text: str) -> Meant:
    folder = f"./{text.rpartition('/')[2].removesuffix('.deb')}"
    return Meant(f"unpack the package first: dpkg-deb -x {text} {folder}", f"image:{folder}")


def _of_version(text: str, number: str) -> Meant:
    return Meant(
        f"a version can be a package (deb:linux-image-{number}-amd64), a commit of a clone "
        f"(git:PATH@v{number}) or a source tree (./{text})",
        f"git:linux@v{number}",
    )
