# SPDX-License-Identifier: GPL-2.0-or-later
"""The user's source -> a tree in kdelta's store; nothing is written to where it comes from.

A tree here is named by git's hash of its content: equal files, equal hash.
"""

import difflib
import os
import re
import stat
from pathlib import Path

from kdelta.host.command import Log
from kdelta.kernels.sources.git import (
    GitResult,
    GitStore,
    copy_objects,
    must_be_repository,
    object_named,
    read_repository,
)
from kdelta.spec.errors import LabError, UserError

_MANY = 1000
"""So many new files are better stored as one pack than one by one."""
_KEPT_TREES = 20

# Files that are part of a tree though the kernel's .gitignore takes all dot files away.
_DOT_FILES = (
    *(".clang-format", ".clippy.toml", ".cocciconfig", ".editorconfig", ".get_maintainer.ignore"),
    *(".gitattributes", ".gitignore", ".kunitconfig", ".mailmap", ".rustfmt.toml"),
)


def import_folder(store: GitStore, folder: Path, log: Log) -> str:
    """The tree of a folder as it stands: in a git repository what is tracked or could be, and else
    all but what the folder's own .gitignore files take for made by a build.

    The first time reads all of it, later ones only what has changed since. UserError for a file
    that cannot be read.
    """
    listed = _files_of(folder, store)
    result = _import(store, folder, listed, log)
    if not result.ok:
        # Perhaps the index is damaged, or knows of files that a power cut took from the store. It
        # only saves time.
        store.index("import").unlink(missing_ok=True)
        result = _import(store, folder, listed, log)
    if match := re.search(r'open\("(.*)"\): (.*)', result.stderr):
        raise UserError(f"{folder / match[1]} cannot be read: {match[2]}", "make it readable")
    if not result.ok:
        raise store.broken(result)
    return result.text


def _import(store: GitStore, folder: Path, listed: list[bytes], log: Log) -> GitResult:
    """Brings the index up to date with the listed files, then writes the tree."""
    known = set(_names(store.attempt("ls-files", "-z", index="import").stdout))
    gone = known.difference(listed)
    words = ["update-index", "-z", "--add", "--remove", "--stdin"]
    if len(listed) - len(known) + len(gone) > _MANY:
        log(f"reading {folder}, {len(listed):,} files; later only what has changed")
        words = ["-c", "core.bigFileThreshold=1", *words]
    if gone:
        leave = ["update-index", "-z", "--force-remove", "--stdin"]
        store.attempt(*leave, index="import", work=folder, stdin=_lines(sorted(gone)))
    result = store.attempt(*words, index="import", work=folder, stdin=_lines(listed))
    return store.attempt("write-tree", index="import") if result.ok else result


def _lines(names: list[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in names)


def _names(listed: bytes) -> list[bytes]:
    return [name for name in listed.split(b"\0") if name]


def _files_of(folder: Path, store: GitStore) -> list[bytes]:
    """The files of a source folder that are there, by names below it, sorted. Those of repositories
    inside it are among them: a driver's, perhaps.
    """
    tracked = read_repository(folder, "ls-files", "-z", "--", "Makefile")
    is_tracked = tracked.ok and tracked.stdout
    listed = _list_repository(folder) if is_tracked else _list_plain(folder, store)
    return sorted(_flattened(folder, listed, store))


def _flattened(folder: Path, result: GitResult, store: GitStore) -> set[bytes]:
    if not result.ok or "could not open directory" in result.stderr:
        raise UserError(f"{folder} cannot be read: {result.complaint()}", "make it readable")
    root = os.fsencode(folder)
    names: set[bytes] = set()
    for name in _names(result.stdout):
        try:
            mode = os.lstat(root + b"/" + name).st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue  # tracked, and deleted
        if not stat.S_ISDIR(mode):
            names.add(name)
        elif (inner := folder / os.fsdecode(name)).joinpath(".git").exists():
            listed = _list_repository(inner)
            below = _flattened(inner, listed if listed.ok else _list_plain(inner, store), store)
            names.update(name.rstrip(b"/") + b"/" + path for path in below)
    return names


def _list_repository(folder: Path) -> GitResult:
    # Only the user's own git knows all that is to be ignored there.
    return read_repository(folder, "ls-files", "-z", "-c", "-o", "--exclude-standard")


def _list_plain(folder: Path, store: GitStore) -> GitResult:
    """Lists a folder that is no repository: all but what its .gitignore files name."""
    # A distribution's source has "/*" in the topmost one: for its packaging, all of it is ignored.
    lines = ["!/*", *_ignored_lines(folder / ".gitignore"), *(f"!{name}" for name in _DOT_FILES)]
    patterns = [word for line in lines for word in ("-x", line)]
    words = ["ls-files", "-z", "-o", "--exclude-per-directory=.gitignore", *patterns]
    return store.attempt(*words, index="no", work=folder)


def _ignored_lines(file: Path) -> list[str]:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return []
    everything = ("", "*", "/*", "/**", "**")
    return [line for line in lines if not line.startswith("#") and line.strip() not in everything]


def import_commit(store: GitStore, repository: Path, revision: str, log: Log) -> str:
    """The tree of a commit, tag or branch of a user's repository, copied once.

    UserError when there is no such repository or revision.
    """
    tree = check_commit(repository, revision)
    if store.has(f"{tree}^{{tree}}"):
        return tree
    log(f"copying {revision} out of {repository}")
    refs = store.git("for-each-ref", "--format=%(objectname)", "refs/trees/").text.split()
    have = refs[-_KEPT_TREES:]
    common = [f"^{name}" for name in have if read_repository(repository, "cat-file", "-e", name).ok]
    copy_objects(repository, [tree, *common], store).or_raise(
        LabError,
        f"{revision} could not be copied out of {repository}",
        f"see what git says of it: git -C {repository} fsck; a partial clone must first "
        f"fetch the commit's files: git -C {repository} archive {revision} >/dev/null",
    )
    # What is there by a ref need not be copied for the next commit.
    store.git("update-ref", f"refs/trees/{tree}", tree)
    return tree


def check_commit(repository: Path, revision: str) -> str:
    """Return the name of the tree of a commit, tag or branch. UserError when there is no such
    repository or revision.
    """
    hint = f"for the files as they stand write tree:{repository}"
    found = must_be_repository(repository, hint, "--show-prefix")
    prefix = found.stdout.decode("utf-8", "replace").removesuffix("\n")
    return _tree_of(repository, revision, prefix)


def _tree_of(repository: Path, revision: str, prefix: str) -> str:
    name = f"{revision}:{prefix.rstrip('/')}" if prefix.strip("/\n") else f"{revision}^{{tree}}"
    if not (tree := object_named(repository, name)):
        raise _unknown_revision(repository, revision, prefix)
    if len(tree) != len("0" * 40):
        raise UserError(
            f"{repository} names its commits by SHA-256, which git:PATH@REV cannot read",
            f"check {revision} out and write tree:{repository}",
        )
    return tree


def _unknown_revision(repository: Path, revision: str, prefix: str) -> UserError:
    if prefix and object_named(repository, f"{revision}^{{tree}}"):
        return UserError(f"{revision} has no folder {prefix} in {repository}")
    listed = read_repository(repository, "for-each-ref", "--format=%(refname:short)")
    names = listed.text.splitlines()
    if near := difflib.get_close_matches(revision, names, n=5, cutoff=0.5):
        hint = f"the nearest: {', '.join(near)}"
    elif names:
        hint = f"there is: {', '.join(names[-5:])}" + (" and more" if len(names) > 5 else "")
    else:
        hint = "it has no tags or branches; a hash may be one of a history that was not fetched"
    return UserError(f"{repository} has no commit {revision}", hint)
