# SPDX-License-Identifier: GPL-2.0-or-later
"""Serves archives of packages to the real apt: a mirror, and a snapshot archive signed by a key of
our own.
"""

import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import FakeProgram
from tests.kernels.openpgp import signed

APT_GET, APT_CACHE = Path("/usr/bin/apt-get"), Path("/usr/bin/apt-cache")


def use_apt(
    folder: Path, source: str, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Makes apt know only the mirror of a line of sources.list, no list of it, and none of the
    host's settings.
    """
    if not APT_GET.exists():
        pytest.skip("this host has no apt-get")
    # By its path, since a test without network need not find it on the PATH.
    for program in (APT_GET, APT_CACHE):
        fake_program(program.name, f'#!/bin/sh\nexec {program} "$@"\n')
    (folder / "sources.list").write_text(f"{source}\n")
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "apt.conf").write_text(
        f'Dir::Etc::SourceList "{folder}/sources.list";\nDir::Etc::SourceParts "/dev/null";\n'
        'Dir::Etc::Main "/dev/null";\nDir::Etc::Parts "/dev/null";\n'
        f'Dir::State::status "/dev/null";\nDir::State::Lists "{folder}/lists";\n'
        f'Dir::Cache "{folder}/apt-cache";\nAcquire::http::Proxy "DIRECT";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(folder / "apt.conf"))


@contextlib.contextmanager
def serving(get: Callable[[str], bytes | int]) -> Iterator[str]:
    """Serves what `get` has at a path, or its error's code; gives the address, without a slash."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = get(self.path)
            code, body = (content, b"") if isinstance(content, int) else (200, content)
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                if self.command == "GET":
                    self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  (the server's name for it)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


class Package(NamedTuple):
    """A package that a suite offers."""

    name: str
    version: str
    content: bytes
    depends: str = ""
    architecture: str = ""


class Archives:
    """A mirror below /mirror/, and a snapshot archive below /snapshot/. What ends in `stalled` is
    answered only when the test has ended.
    """

    def __init__(self, architecture: str) -> None:
        self.architecture = architecture
        self.files: dict[str, bytes | int] = {}
        self.requests: list[str] = []
        self.stalled = ""
        self.ended = threading.Event()
        self._seen: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}

    def get(self, path: str) -> bytes | int:
        """What is at a path: its content, or an error's code."""
        self.requests.append(path)
        if self.stalled and path.endswith(self.stalled):
            self.ended.wait(60)
        return self.files.get(path, 404)

    def mirror(self, suite: str, *packages: Package) -> None:
        """Makes the mirror offer that."""
        self._suite("/mirror", suite, "Date: Sat, 01 Aug 2026 00:00:00 UTC\n", packages, "Release")

    def dated(
        self,
        archive: str,
        stamp: str,
        suite: str,
        *packages: Package,
        made: timedelta = timedelta(hours=-1),
        valid: timedelta | None = timedelta(days=7),
    ) -> str:
        """Makes a dated suite offer that: its index is of `made` after the date, and valid until
        `valid` after it. Returns the path of the index.
        """
        when = datetime.strptime(stamp, "%Y%m%dT%H%M%S%z")
        dates = f"Date: {when + made:%a, %d %b %Y %H:%M:%S} UTC\n"
        if valid is not None:
            dates += f"Valid-Until: {when + valid:%a, %d %b %Y %H:%M:%S} UTC\n"
        at = f"/snapshot/archive/{archive}/{stamp}"
        for one in packages:
            self.saw(one, archive, stamp)
        return self._suite(at, suite, dates, packages, "InRelease")

    def saw(self, package: Package, archive: str, stamp: str) -> None:
        """Makes the snapshot archive answer that it saw the package then."""
        sha1 = hashlib.sha1(package.content, usedforsecurity=False).hexdigest()
        seen = self._seen.setdefault((package.name, package.version), {})
        seen.setdefault(sha1, []).append({"archive_name": archive, "first_seen": stamp})
        binaries = [
            {"architecture": package.architecture or self.architecture, "hash": one} for one in seen
        ]
        answer = {"_comment": "x", "result": binaries, "fileinfo": seen}
        self.files[asked(package.name, package.version)] = json.dumps(answer).encode()

    def _suite(
        self, at: str, suite: str, dates: str, packages: tuple[Package, ...], index: str
    ) -> str:
        listed = ""
        for one in packages:
            of = one.architecture or self.architecture
            file = f"pool/{one.name}_{one.version}_{of}.deb"
            self.files[f"{at}/{file}"] = one.content
            depends = f"Depends: {one.depends}\n" if one.depends else ""
            listed += (
                f"Package: {one.name}\nVersion: {one.version}\nArchitecture: {of}\n{depends}"
                f"Maintainer: x <x@example.org>\nDescription: x\nFilename: {file}\n"
                f"Size: {len(one.content)}\nSHA256: {hashlib.sha256(one.content).hexdigest()}\n\n"
            )
        name = f"main/binary-{self.architecture}/Packages"
        self.files[f"{at}/dists/{suite}/{name}"] = listed.encode()
        text = (
            f"Suite: {suite}\nCodename: {suite}\nArchitectures: {self.architecture}\n"
            f"Components: main\n{dates}SHA256:\n"
            f" {hashlib.sha256(listed.encode()).hexdigest()} {len(listed)} {name}\n"
        )
        path = f"{at}/dists/{suite}/{index}"
        self.files[path] = signed(text) if index == "InRelease" else text.encode()
        return path


def asked(name: str, version: str) -> str:
    """Where the snapshot archive is asked when it saw a package."""
    return f"/snapshot/mr/binary/{name}/{version}/binfiles?fileinfo=1"
