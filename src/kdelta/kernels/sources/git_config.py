# SPDX-License-Identifier: GPL-2.0-or-later
"""The environment and the settings with which git reads a user's repository: nothing that the
repository names is run.

A repository's config can name programs for what looks like reading: `git status` cleans files by
filters, `git log` verifies signatures. git lets no later setting remove an earlier one, so each
such setting that the repository has is overridden.
"""

import functools
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from kdelta.host.command import find_program
from kdelta.host.environment import environ_with

_NONE = {
    "core.alternateRefsCommand": "false",
    "core.askPass": "",
    "core.attributesFile": "/dev/null",
    "core.editor": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "core.untrackedCache": "false",
    "credential.helper": "",
    "diff.external": "",
    "diff.ignoreSubmodules": "all",
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.ssh.program": "false",
    "gpg.ssh.defaultKeyCommand": "",
    "gpg.x509.program": "false",
    "log.mailmap": "false",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "trailer.ifmissing": "doNothing",
}
"""Settings that are overridden whether the repository has them or not."""

_RUN = re.compile(
    r"(?s)(?:alias\..*|pager\..*|man\..*|browser\..*"
    r"|(?:filter|diff|merge|mergetool|difftool|trailer|credential|remote|submodule|tar|gpg|hook)\."
    r"(?:.*\.)?(?:clean|smudge|process|command|cmd|textconv|driver|helper|program|uploadpack"
    r"|receivepack|vcs|proxy|update|defaultkeycommand))"
)
_REQUIRED = re.compile(r"(?s)filter\..*\.required")

_FROM_USER = ("safe.directory", "core.excludesFile")
"""What the user has set for all repositories, and what is kept: whose repositories may be read, and
which files no tree has."""


def plain_environment() -> dict[str, str]:
    """Return the environment without what it says to git: a hook may run kdelta, or a bisection."""
    return environ_with({"GIT_TERMINAL_PROMPT": "0"})


def isolated_environment() -> dict[str, str]:
    """The environment in which git knows no settings of the user or the system."""
    return {
        **plain_environment(),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def reading_environment(folder: Path) -> dict[str, str]:
    """The environment in which git reads the user's repository that has this folder."""
    return {
        **isolated_environment(),
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        # A partial clone must not begin to fetch what it lacks.
        "GIT_ALLOW_PROTOCOL": "none",
        **_as_environment([*_users(), *_harmless(folder)]),
    }


def writing_environment(folder: Path) -> dict[str, str]:
    """The environment in which git writes a branch of the user's repository, as that user."""
    settings = {"apply.whitespace": "nowarn", "core.autocrlf": "false", "core.bare": "true"}
    found = [*_harmless(folder), *settings.items()]
    return {**plain_environment(), **_as_environment(found)}


def _harmless(folder: Path) -> list[tuple[str, str]]:
    """The settings that make each program that a repository's config names one that is not run."""
    env = {**isolated_environment(), **_as_environment(_users())}
    names = _config(folder, env, "--list", "--name-only")
    found = dict.fromkeys((name for name in names if _RUN.fullmatch(name)), "")
    found |= dict.fromkeys((name for name in names if _REQUIRED.fullmatch(name)), "false")
    return [*found.items(), *_NONE.items()]


@functools.cache
def _users() -> tuple[tuple[str, str], ...]:
    """What is kept of the user's and the system's settings."""
    env = plain_environment()
    return tuple(
        (name, value)
        for name in _FROM_USER
        for level in ("--system", "--global")
        for value in _config(Path("/"), env, level, "--get-all", name)
    )


def _config(folder: Path, env: dict[str, str], *words: str) -> list[str]:
    """What `git config` prints to these words; nothing where it fails, as without a repository."""
    argv = [find_program("git"), "config", "--null", *words]
    said = subprocess.run(argv, cwd=folder, env=env, capture_output=True, check=False).stdout
    return [one for one in said.decode("utf-8", "surrogateescape").split("\0") if one]


def _as_environment(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Settings as git takes them from its environment, where a name may have any character."""
    env: dict[str, str] = {}
    count = 0
    for name, value in settings:
        env |= {f"GIT_CONFIG_KEY_{count}": name, f"GIT_CONFIG_VALUE_{count}": value}
        count += 1
    return {**env, "GIT_CONFIG_COUNT": str(count)}
