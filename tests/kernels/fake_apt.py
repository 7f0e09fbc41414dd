# SPDX-License-Identifier: GPL-2.0-or-later
"""An apt of our own making: apt-get and apt-cache that read what there is from a JSON file.

{"packages": {NAME: {VERSION: {"depends": TEXT, "deb": PATH}}}, "network": BOOL, "calls": PATH,
 "before_download": SHELL, "own_lists": {NAME: ...} what the mirror has after an update,
 "renewed": how many more fetches find the mirror being renewed, "loaded_meanwhile": {NAME: ...}}

It starts hundreds of times in the tests, so what few calls need is imported where they need it,
and pathlib not at all.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def script(program: str, state: os.PathLike[str]) -> str:
    """Returns a shell script that acts as `program`, which is apt-get or apt-cache, and reads the
    JSON file `state`.
    """
    line = f'FAKE_APT="{state}" exec {sys.executable} -I -S {__file__} {program} "$@"'
    return f"#!/bin/sh\n{line}\n"


def main(program: str, words: list[str]) -> int:
    """Acts as `program`; the exit code is what the real one would give."""
    state = read(os.environ["FAKE_APT"])
    own = next((word for word in words if word.startswith("Dir::State::Lists=")), None)
    packages = state["packages"]
    if own is not None:
        lists = f"{own.partition('=')[2]}/known.json"
        packages = read(lists) if os.path.exists(lists) else {}
    plain = [word for word in words if "::" not in word and word not in ("-q", "-o")]
    if plain[0] == "update":
        assert own is not None
        return update(state, lists)
    act = {"pkgnames": pkgnames, "madison": madison, "policy": policy, "show": show}
    if plain[:2] == ["show", "--no-all-versions"]:
        return offers(packages, plain[2:])
    if program == "apt-cache":
        act[plain[0]](packages, plain[1])
        return 0
    assert plain[0] == "download"
    return download(state, packages, plain[1])


def read(path: str) -> dict[str, Any]:
    """Returns what a JSON file has."""
    with open(path, encoding="utf-8") as file:
        return dict(json.load(file))


def write(path: str, value: dict[str, Any]) -> None:
    """Writes a JSON file."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


# Recorded from apt 2.6.1, which ends with 100 then and keeps the older list.
RENEWED = """\
E: Failed to fetch http://mirror.example/x  File has unexpected size (232 != 220). \
Mirror sync in progress? [IP: 192.0.2.1 80]
   Hashes of expected file:
    - Filesize:220 [weak]
"""
SOME_FAILED = """\
E: Some index files failed to download. They have been ignored, or old ones used instead.
"""


def is_renewed(state: dict[str, Any]) -> bool:
    """Whether the mirror is being renewed; if so, once less from now on."""
    left = state.get("renewed", 0)
    if left:
        write(os.environ["FAKE_APT"], {**state, "renewed": left - 1})
    return bool(left)


def update(state: dict[str, Any], lists: str) -> int:
    """apt-get update: ends with 0 even when nothing could be fetched."""
    if is_renewed(state):
        if "loaded_meanwhile" in state:
            write(lists, state["loaded_meanwhile"])
        print(RENEWED, SOME_FAILED, sep="", end="", file=sys.stderr)
        return 100
    if state["network"]:
        write(lists, state["own_lists"])
    else:
        print("W: Failed to fetch http://mirror.example/x  Could not resolve", file=sys.stderr)
    return 0


def pkgnames(packages: dict[str, Any], start: str) -> None:
    """The names that start so, in no order."""
    print("\n".join(name for name in reversed(packages) if name.startswith(start)))


def madison(packages: dict[str, Any], name: str) -> None:
    """The versions, newest first."""
    for version in reversed(packages.get(name, {})):
        print(f"{name} | {version} | http://mirror.example/debian stable/main amd64 Packages")
        print(f"{name} | {version} | http://mirror.example/debian stable/main Sources")


def policy(packages: dict[str, Any], name: str) -> None:
    """The candidate; nothing at all for a package that is not known."""
    if versions := list(packages.get(name, {})):
        print(f"{name}:\n  Installed: (none)\n  Candidate: {versions[-1]}\n  Version table:")


def show(packages: dict[str, Any], wanted: str) -> None:
    """The record of one version."""
    name, _, version = wanted.partition("=")
    if depends := packages[name][version].get("depends"):
        print(f"Package: {name}\nVersion: {version}\nDepends: {depends}\nDescription: x")


def offers(packages: dict[str, Any], names: list[str]) -> int:
    """The records of the newest versions, with the hashes that the lists have of their files."""
    import hashlib

    for name in names:
        for version, record in list(packages.get(name, {}).items())[-1:]:
            print(f"Package: {name}\nVersion: {version}\nDescription: x\n and more: of it")
            if depends := record.get("depends"):
                print(f"Depends: {depends}")
            if deb := record.get("deb"):
                with open(deb, "rb") as file:
                    found = record.get("sha256", hashlib.sha256(file.read()).hexdigest())
                print(f"SHA256: {found}")
            print()
    return 0 if all(name in packages for name in names) else 100


def download(state: dict[str, Any], packages: dict[str, Any], wanted: str) -> int:
    """A copy of the package into the working folder, if the mirror has it and can be reached."""
    import shutil

    with open(state["calls"], "a", encoding="utf-8") as calls:
        calls.write(f"download {wanted}\n")
    name, _, version = wanted.partition("=")
    if before := state.get("before_download"):
        shell = os.spawnlp(os.P_WAIT, "sh", "sh", "-c", before)
        assert shell == 0, f"{before} ended with {shell}"
    if not state["network"]:
        print(
            f"E: Failed to fetch http://mirror.example/{name}  Could not resolve", file=sys.stderr
        )
        return 100
    source = packages[name][version].get("deb")
    if source is None:
        print(f"E: Failed to fetch http://mirror.example/{name}  404  Not Found", file=sys.stderr)
        return 100
    if is_renewed(state):
        open(f"{name}_{version}_amd64.deb.FAILED", "w").close()
        print(RENEWED, end="", file=sys.stderr)
        return 100
    shutil.copy(source, f"{name}_{version.replace(':', '%3a')}_amd64.deb")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
