# SPDX-License-Identifier: GPL-2.0-or-later
"""Symbols of stripped programs, from the debuginfod servers that DEBUGINFOD_URLS names."""

import functools
import http.client
import io
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from kdelta.host.dirs import cache_dir
from kdelta.host.sealed import read_sealed, write_sealed
from kdelta.spec.errors import LabError
from kdelta.spec.limits import DEBUG_FILE_BYTES, DEBUG_FILES_SECONDS

VARIABLE = "DEBUGINFOD_URLS"
_STALLED_SECONDS = 10

_STEP_BYTES = 1 << 20
_NOT_FOUND = 404


def symbol_files(binaries: Mapping[str, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the debug files of the binaries that have a build id and no symbols of their own, as
    far as a server has them; and a warning where one could not be asked. Nothing is asked unless
    the user's environment names servers.
    """
    servers = _servers(os.environ.get(VARIABLE, ""))
    if not servers:
        return {}, ()
    found, failures = {}, []
    for name, content in sorted(binaries.items()):
        if build_id := stripped_build_id(content):
            debug, failure = _asked(build_id, servers)
            if debug:
                found[name] = debug
            if failure:
                failures.append(f"{name}: {failure}")
    if not failures:
        return found, ()
    more = f" (and {len(failures) - 1} more)" if failures[1:] else ""
    return found, (f"no symbols by {VARIABLE} of {failures[0]}{more}",)


def _servers(urls: str) -> tuple[str, ...]:
    return tuple(one.rstrip("/") for one in urls.split() if one.startswith(("http:", "https:")))


def stripped_build_id(content: bytes) -> str:
    """Return the build id of an ELF file without a symbol table; empty for any other file."""
    try:
        elf = ELFFile(io.BytesIO(content))
        return "" if elf.get_section_by_name(".symtab") else _build_id(elf)
    except (ELFError, KeyError, ValueError):
        return ""


def _build_id(elf: ELFFile) -> str:
    section = elf.get_section_by_name(".note.gnu.build-id")
    notes = section.iter_notes() if isinstance(section, NoteSection) else ()
    return next((str(note["n_desc"]) for note in notes if note["n_type"] == "NT_GNU_BUILD_ID"), "")


@functools.cache  # so that all kernels of a command have the same symbols
def _asked(build_id: str, servers: tuple[str, ...]) -> tuple[bytes | None, str]:
    """The debug file of a build id, or else why it could not be had; neither if there is none."""
    path = cache_dir("debuginfod") / f"{build_id}.debug"
    if (kept := read_sealed(path)) is not None:
        return kept, ""
    failure, deadline = "", _deadline()
    for server in servers:
        try:
            content = b"".join(_download(f"{server}/buildid/{build_id}/debuginfo", deadline))
            if _build_id(ELFFile(io.BytesIO(content))) != build_id:
                raise ValueError("the answer is another file")
            write_sealed(path, content)
        except urllib.error.HTTPError as error:
            with error:  # it is the answer, too
                failure = "" if error.code == _NOT_FOUND else f"{server}: {error.code}"
        except (OSError, ValueError, ELFError, LabError, http.client.HTTPException) as error:
            failure = f"{server}: {error}"
        else:
            return content, ""
    return None, failure


@functools.cache
def _deadline() -> float:
    return time.monotonic() + DEBUG_FILES_SECONDS


def _download(url: str, deadline: float) -> Iterator[bytes]:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"more than {DEBUG_FILES_SECONDS} seconds")
    total = 0
    with urllib.request.urlopen(url, timeout=min(left, _STALLED_SECONDS)) as source:
        while part := source.read1(_STEP_BYTES):
            total += len(part)
            if total > DEBUG_FILE_BYTES:
                raise ValueError(f"more than {DEBUG_FILE_BYTES >> 20} MiB")
            if time.monotonic() > deadline:
                raise TimeoutError(f"more than {DEBUG_FILES_SECONDS} seconds")
            yield part
