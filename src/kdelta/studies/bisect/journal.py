# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisection has to remember of kernels that failed: the cache and the store keep the others,
and one that was interrupted asks for the same commits again.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.host.dirs import data_dir
from kdelta.host.files import write_atomic
from kdelta.kernels.sources.history import CommitRange
from kdelta.spec.change import ConfigFileChange, PatchChange, parse_change
from kdelta.spec.identity import identity
from kdelta.spec.run import RunStatus

FORMAT = 1


class FailedCommit(msgspec.Struct, frozen=True):
    """A commit whose kernel was refused, or failed to build, to boot or to run."""

    commit: str
    status: RunStatus
    detail: str
    identity: str


class _Kept(msgspec.Struct, frozen=True):
    repository: str
    good: str
    bad: str
    failures: tuple[FailedCommit, ...] = ()
    format: int = FORMAT


class Journal:
    """The failures of one search, in a file of the data folder."""

    def __init__(
        self, commits: CommitRange, asked: Sequence[object], changes: Sequence[str]
    ) -> None:
        repository = str(commits.repository.resolve())
        facts = [repository, commits.good.name, commits.bad.name, list(asked)]
        key = identity({"facts": facts, "changes": [_content(one) for one in changes]})
        self.path = data_dir("bisect") / f"{key[:32]}.json"
        self._kept = _Kept(repository, commits.good.name, commits.bad.name)
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found = msgspec.json.decode(self.path.read_bytes(), type=_Kept)
            self._kept = found if found.format == FORMAT else self._kept

    def failure(self, commit: str) -> FailedCommit | None:
        """How that commit failed, if it did."""
        return next((one for one in self._kept.failures if one.commit == commit), None)

    def add(self, failure: FailedCommit) -> None:
        """Remembers a failure; it is on disk when this returns."""
        others = tuple(one for one in self._kept.failures if one.commit != failure.commit)
        self._kept = msgspec.structs.replace(self._kept, failures=(*others, failure))
        write_atomic(self.path, msgspec.json.format(msgspec.json.encode(self._kept)))

    def forget(self) -> None:
        """All failures are to be tried again."""
        self._kept = msgspec.structs.replace(self._kept, failures=())


def _content(change: str) -> str:
    """A change, and what its file holds."""
    parsed = parse_change(change)
    if isinstance(parsed, PatchChange | ConfigFileChange):
        with contextlib.suppress(OSError):
            return f"{change} {identity(Path(parsed.path).expanduser().read_text('latin-1'))}"
    return change
