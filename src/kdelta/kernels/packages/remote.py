# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetches what the user names by an address, or copies what is named by a path."""

import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from kdelta.host.files import expanded, lab_errors
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.limits import DOWNLOAD_BYTES as MAX_BYTES

_STALLED_SECONDS = 60
_STEP_BYTES = 1 << 20
_PAGES, _PAGE_BYTES = (b"<!doctype html", b"<html"), 512
"""How pages begin, which servers send in place of what they do not have or let only some have."""
_HASHES = ("sha224", "sha256", "sha384", "sha512")


class Checksum(NamedTuple):
    """The hash that a file must have, in hexadecimal digits, and by which function."""

    function: str
    digits: str


def is_address(place: str) -> bool:
    """Whether it is an address, and no path."""
    return "://" in place


def local_path(place: str) -> Path | None:
    """Return the path of what is on this host; None for what is not."""
    if place.startswith("file://"):
        return Path(urlsplit(place).path)
    return None if is_address(place) else expanded(place)


def below(place: str, name: str) -> str:
    """The place of a file below a folder or an address; LabError if the name leads elsewhere."""
    if name.startswith("/") or ".." in name.split("/") or is_address(name):
        raise LabError(f"cannot use the repository {place}: it names a file {name!r}")
    return f"{place.rstrip('/')}/{name}"


def fetch(place: str, path: Path) -> None:
    """Writes what is at that address, or in that file, into a new file. UserError for an address
    that is of no use, LabError if it cannot be fetched.
    """
    if (local := local_path(place)) is not None:
        if not local.is_file():
            raise UserError(f"no such file: {local}")
        with lab_errors("copying", local):
            shutil.copyfile(local, path)
        return
    if not place.startswith(("http://", "https://")):
        raise UserError(f"cannot fetch {place}: not an address of http or https")
    try:
        # By the proxy that the environment names, and with the host's certificates.
        with (
            urllib.request.urlopen(place, timeout=_STALLED_SECONDS) as source,
            path.open("xb") as target,
        ):
            total_bytes = 0
            while part := source.read(_STEP_BYTES):
                total_bytes += len(part)
                if total_bytes > MAX_BYTES:
                    raise LabError(f"cannot fetch {place}: it has more than {MAX_BYTES >> 30} GiB")
                target.write(part)
            if source.length:  # what the server announced and did not send
                raise _failed(place, f"the last {source.length} bytes did not come")
    except urllib.error.HTTPError as error:
        with error:  # it is the answer, too
            why = str(error.reason).partition("\n")[0]
            raise _failed(place, f"{error.code} {why}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _failed(place, str(error)) from error
    with path.open("rb") as file:
        if file.read(_PAGE_BYTES).lstrip().lower().startswith(_PAGES):
            raise LabError(
                f"cannot use {place}: it is a web page, and no file of packages",
                "name the address that the page links to, and log in where it asks for that",
            )


def _failed(place: str, why: str) -> LabError:
    return LabError(
        f"cannot fetch {place}: {why}", "check the address and the network, then try again"
    )


def fetch_verified(place: str, path: Path, wanted: Checksum) -> None:
    """Fetches a file whose hash is known; LabError if it has another one."""
    if wanted.function not in _HASHES:
        raise LabError(
            f"cannot verify {place}: its repository has only hashes by {wanted.function}",
            f"name a repository that has hashes by {' or '.join(_HASHES[1::2])}",
        )
    fetch(place, path)
    with lab_errors("reading", path), path.open("rb") as file:
        found = hashlib.file_digest(file, wanted.function).hexdigest()
    if found != wanted.digits:
        raise LabError(
            f"cannot use {place}: its {wanted.function} is {found}, and its repository says"
            f" {wanted.digits}",
            "the file is damaged, or the mirror is being renewed: try again later",
        )
