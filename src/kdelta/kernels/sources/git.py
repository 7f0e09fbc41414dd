# SPDX-License-Identifier: GPL-2.0-or-later
"""The git program, in one place: kdelta's own stores of source trees, and the user's repositories,
which are only read.

A store takes no object from a user's repository by reference: git renews the times of files there
when it meets an object that it already has, and the user's clean-up would leave holes in the store.
"""

import errno
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import echo_command, find_program
from kdelta.host.files import is_full, new_folder, os_failure, remove
from kdelta.spec.errors import LabError, UserError

# What the user has set for git must change neither what a tree holds nor how long it takes.
_SETTINGS = {
    "core.attributesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.bare": "true",
    # On a 6.12 tree 1 takes as long as 0, and a quarter of the space.
    "core.compression": "1",
    "core.excludesFile": "/dev/null",
    "core.fileMode": "true",
    "core.hooksPath": "/dev/null",
    "core.precomposeUnicode": "false",
    "core.preloadIndex": "true",
    "core.quotePath": "false",
    "core.symlinks": "true",
    "checkout.workers": "0",
    "gc.auto": "0",
    "index.version": "4",
    "maintenance.auto": "false",
    "pack.threads": "0",
}
# The kernel's own .gitattributes say nothing that changes a file; others' could.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding -export-subst\n"

_READ_ONLY = [
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    # It is read at the user's request, whatever its owner is.
    *("-c", "safe.directory=*"),
]

_LEFTOVERS = (
    *("objects/tmp_*", "objects/pack/tmp_*", "objects/pack/.tmp-*", "objects/??/tmp_obj_*"),
    *("import-index.lock", "patch-index*", "fast_import_crash_*", "refs/**/*.lock"),
)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class GitResult(msgspec.Struct, frozen=True):
    """How git ended; what it printed is bytes, since names of files need not be UTF-8."""

    returncode: int
    stdout: bytes
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.returncode == 0

    @property
    def text(self) -> str:
        """What it printed, as one stripped text."""
        return self.stdout.decode("utf-8", "replace").strip()

    def complaint(self) -> str:
        """The first error that it named."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("error: ", "fatal: "))]
        first = (errors or lines or [f"it ended with {self.returncode} and said nothing"])[0]
        return first.removeprefix("error: ").removeprefix("fatal: ")


class GitStore:
    """kdelta's own objects of one source: `folder`/git. Nothing else writes there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git_dir = folder / "git"

    def create(self) -> None:
        """Makes the store if it is not there; the caller holds a lock for the folder."""
        if self.git_dir.is_dir():
            self._remove_leftovers()
            return
        with new_folder(self.git_dir) as partial:
            result = run_git(["init", "-q", "--bare", "--template=", partial])
            if not result.ok:
                raise LabError(f"git could not make a store: {result.complaint()}")
            config = "".join(_config_line(name, value) for name, value in _SETTINGS.items())
            with (partial / "config").open("a") as file:
                file.write(config)
            (partial / "info").mkdir(exist_ok=True)
            (partial / "info" / "attributes").write_text(_ATTRIBUTES)

    def _remove_leftovers(self) -> None:
        """Removes what an interrupted git left: none of it is ever taken for whole, but it may be
        gigabytes, and a lock would stand in the way.
        """
        for pattern in _LEFTOVERS:
            for path in self.git_dir.glob(pattern):
                remove(path)

    def index(self, name: str) -> Path:
        """The file of the store's index of that name."""
        return self.git_dir / f"{name}-index"

    def environment(self, index: str | None = None, work: Path | None = None) -> dict[str, str]:
        """The environment in which git works on this store."""
        env = {**_isolated(), "GIT_DIR": str(self.git_dir)}
        if index is not None:
            env["GIT_INDEX_FILE"] = str(self.index(index))
        if work is not None:
            env["GIT_WORK_TREE"] = str(work)
        return env

    def attempt(
        self,
        *words: str | Path,
        index: str | None = None,
        work: Path | None = None,
        stdin: bytes = b"",
    ) -> GitResult:
        """Runs git on the store; its failure is in the result. LabError for a full disk."""
        result = run_git(words, env=self.environment(index, work), cwd=work, stdin=stdin)
        check_space(result, self.folder)
        return result

    def git(
        self,
        *words: str | Path,
        index: str | None = None,
        work: Path | None = None,
        stdin: bytes = b"",
    ) -> GitResult:
        """Runs git on the store; LabError when it fails."""
        result = self.attempt(*words, index=index, work=work, stdin=stdin)
        if not result.ok:
            raise self.broken(result)
        return result

    def check_out(self, tree: str, index: str, work: Path) -> None:
        """Makes a folder hold the files of a tree and no others. Files that have their content
        already keep their times.
        """
        file = self.index(index)
        remove(file.with_name(f"{file.name}.lock"))
        # Where times are other than git remembers, in a copied cache, it must look at the content.
        self.attempt("update-index", "-q", "--refresh", index=index, work=work)
        words = ("read-tree", "--reset", "-u", tree)
        if not self.attempt(*words, index=index, work=work).ok:
            # The index may be damaged; without it all files are written again.
            remove(file)
            self.git(*words, index=index, work=work)
        # What an interrupted change of trees left behind would be found by make.
        self.git("clean", "-ffdxq", index=index, work=work)

    def broken(self, result: GitResult) -> LabError:
        """The error for a store on which git failed."""
        return LabError(
            f"git failed on kdelta's copy of a source tree: {result.complaint()}",
            f"if that stays so, remove {self.folder}; it is made again",
        )

    def has(self, name: str) -> bool:
        """Whether there is an object of that name."""
        return self.attempt("cat-file", "-e", name).ok

    def blob(self, name: str) -> bytes | None:
        """The content of a file, by hash or as TREE:PATH; None if there is none."""
        result = self.attempt("cat-file", "blob", name)
        return result.stdout if result.ok else None


def read_repository(folder: Path, *words: str, stdin: bytes = b"") -> GitResult:
    """Runs a git command that only reads, in a user's repository, with the user's settings."""
    return run_git([*_READ_ONLY, *words], env=_reading(), cwd=folder, stdin=stdin)


def must_be_repository(folder: Path, hint: str = "", *words: str) -> GitResult:
    """What git rev-parse answers to these words, by default where the repository is; UserError with
    that hint for a folder that is in none.
    """
    found = read_repository(folder, "rev-parse", *(words or ["--absolute-git-dir"]))
    if not found.ok:
        raise UserError(f"{folder} is no git repository: {found.complaint()}", hint)
    return found


def object_named(folder: Path, name: str) -> str:
    """The hash of what git calls so in a user's repository; empty if there is no such thing."""
    return read_repository(folder, "rev-parse", "--verify", "--quiet", name).text


def batch_contents(printed: bytes) -> Iterator[bytes | None]:
    """The contents of files as git cat-file --batch prints them; None for what is no file."""
    at = 0
    while at < len(printed):
        end = printed.index(b"\n", at)
        head, at = printed[at:end].rsplit(b" ", 2), end + 1
        if not head[-1].isdigit():
            yield None
            continue
        size = int(head[-1])
        yield printed[at : at + size] if head[1] == b"blob" else None
        at += size + 1


def copy_objects(folder: Path, wanted: Sequence[str], store: GitStore) -> GitResult:
    """Copies objects from a user's repository, and all that they need, into the store.

    `wanted` are hashes; those with ^ before them are in the store. They come as one pack, which is
    whole or not there. What either git said stands in the result.
    """
    git = find_program("git")
    # No search for deltas: those that are there are taken as they are.
    plain = ("-q", "--revs", "--stdout", "--window=0", "--delta-base-offset")
    send = [git, *_READ_ONLY, "-c", "core.compression=1", "pack-objects", *plain]
    take = [git, "index-pack", "--stdin"]
    echo_command([*send, "|", *take], folder)
    with (
        subprocess.Popen(
            send,
            cwd=folder,
            env=_reading(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as sender,
        subprocess.Popen(
            take,
            env=store.environment(),
            stdin=sender.stdout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as taker,
    ):
        assert sender.stdin is not None
        assert sender.stdout is not None
        assert sender.stderr is not None
        sender.stdout.close()
        sender.stdin.write("".join(f"{name}\n" for name in wanted).encode())
        sender.stdin.close()
        said = taker.communicate()[1]
        errors = sender.stderr.read()
    both = (errors + said).decode("utf-8", "replace")
    result = GitResult(sender.returncode or taker.returncode, b"", both)
    check_space(result, store.folder)
    return result


def run_git(
    words: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes = b"",
) -> GitResult:
    """Runs git to its end in exactly this environment, or one without the user's settings."""
    argv = [find_program("git"), *map(str, words)]
    echo_command(["git", *argv[1:]], cwd)
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=env or _isolated(), input=stdin, capture_output=True, check=False
        )
    except OSError as error:
        raise LabError(f"git could not be started: {error.strerror}") from error
    return GitResult(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def check_space(result: GitResult, path: Path) -> None:
    """LabError, with what to do, when git failed for want of space."""
    for number in _FULL:
        full = number == errno.ENOSPC and is_full(path)
        if not result.ok and (full or os.strerror(number) in result.stderr):
            raise os_failure(OSError(number, os.strerror(number)), "copying a source tree to", path)


def plain_environment() -> dict[str, str]:
    """The environment without what it says to git: kdelta may run in a hook, or in a bisection."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**env, "LC_ALL": "C", "LANGUAGE": ""}


def _isolated() -> dict[str, str]:
    return {
        **plain_environment(),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _reading() -> dict[str, str]:
    return {
        **plain_environment(),
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        # A partial clone must not begin to fetch what it lacks.
        "GIT_ALLOW_PROTOCOL": "none",
    }


def _config_line(name: str, value: str) -> str:
    section, _, variable = name.partition(".")
    return f"[{section}]\n\t{variable} = {value}\n"
