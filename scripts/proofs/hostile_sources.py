# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile patches and repositories."""

import random
import shutil
from pathlib import Path

from hostile_made import ESCAPE_BYTES, ESCAPES, Command, built, file, program

from tests.kernels.git_trees import commit, git
from tests.kernels.sources.given_files import MAILBOX, diff, mail
from tests.kernels.trees import fake_tree


def _diffs(folder: Path) -> list[bytes]:
    """Patches that lead out of the tree, are endless, binary, or lie."""
    good = diff()
    paths = (
        "../../canary/file",
        f"{folder}/canary/file",
        "/etc/passwd",
        "scripts/../../../canary/new",
        ".git/hooks/post-checkout",
        ".git/config",
        f"x{ESCAPES}",
        "a\0b",
        "x" * 5000,
        "-rf",
        "",
        '"\\033[2J"',
    )
    made = [
        f"--- /dev/null\n+++ b/{one}\n@@ -0,0 +1 @@\n+HOSTILE\n".encode("utf-8", "replace")
        for one in paths
    ]
    link = (
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n"
        f"+{folder}/canary\n\\ No newline at end of file\n"
        "diff --git a/l/new b/l/new\nnew file mode 100644\n--- /dev/null\n+++ b/l/new\n"
        "@@ -0,0 +1 @@\n+HOSTILE\n"
    )
    renamed = (
        f"diff --git a/init/main.c b/../../canary/x\nrename from Makefile\nrename to {folder}/x\n"
    )
    return [
        *made,
        good.encode(),
        link.encode(),
        renamed.encode(),
        good.replace("core.c", "../../canary/file").encode(),
        b"--- a/kernel/core.c\n+++ b/kernel/core.c\n" + b"@@ -1 +1 @@\n-a\n+b\n" * 1_000_000,
        b"--- a/kernel/core.c\n+++ b/kernel/core.c\n@@ -1,99999999999 +1,99999999999 @@\n a\n",
        b"--- a/kernel/core.c\n+++ b/kernel/core.c\n@@ -0x1,-1 +a,b @@\n" + ESCAPE_BYTES,
        b"diff --git a/x b/x\nnew file mode 100644\nGIT binary patch\nliteral 999999999\nzcmZ\n\n",
        b"diff --git a/x b/x\nnew file mode 160000\nindex 0000000..1111111\n",
        good.encode().replace(b"\n", b"\r\n"),
        good.encode() + b"\0" * 4096,
    ]


def patch(folder: Path, chance: random.Random) -> Command:
    """Make a patch."""
    name = chance.choice(("fix.patch", "fix.diff", "fix.patch.gz", f"f{ESCAPES}.patch"))
    return built(folder, file(folder, chance, name, _diffs(folder)))


def mailbox(folder: Path, chance: random.Random) -> Command:
    """Make a mailbox."""
    chosen = [
        one.decode("utf-8", "surrogateescape") for one in _diffs(folder) if len(one) < 1 << 20
    ]
    text = chance.choice(chosen)
    mails = [
        MAILBOX,
        mail(f"[PATCH 1/9999999] {ESCAPES}", text),
        mail("[PATCH] x", text) * 300,
        mail("=?utf-8?b?////?= =?x-none?q?=1b=5b2J?=", text),
        "From \n" * 100_000,
        mail("[PATCH 2/1] a", text).replace("text/plain", 'multipart/mixed; boundary="a"')
        + '--a\nContent-Type: multipart/mixed; boundary="a"\n\n' * 5000,
        mail("[PATCH] a", text).replace("charset=UTF-8", "charset=../../x"),
        mail("[PATCH] a", text).replace("Content-Type", "Content-Transfer-Encoding: base64\nX"),
    ]
    contents = [one.encode("utf-8", "surrogateescape") for one in mails]
    path = file(folder, chance, "all.mbox", contents)
    if chance.random() < 0.5:
        return built(folder, path)
    return Command(("series", fake_tree(folder / "work"), path, "--timeout", "2", "--perturb", "1"))


def series(folder: Path, chance: random.Random) -> Command:
    """Make a quilt series."""
    (folder / "work/patches").mkdir()
    (folder / "work/patches/good.patch").write_text(diff())
    (folder / "work/patches/link.patch").symlink_to(folder / "canary/file")
    lines = [
        "good.patch\n" * 20_000,
        "../../canary/file\n",
        "/etc/passwd\n",
        f"{ESCAPES}\n",
        "\0\n",
        "good.patch -p99999999999999999999\n",
        "good.patch -R -p-1 --output=x\n",
        "link.patch\n",
        "good.patch -p1 -o ../../canary/file\n",
        "series\n",
        ".\n",
        "good.patch # " + "x" * 1000,
        "-i\n",
        "good.patch\ngood.patch\n",
    ]
    path = file(folder, chance, "patches/series", [one.encode() for one in lines])
    if chance.random() < 0.5:
        return built(folder, path)
    return Command(
        ("series", fake_tree(folder / "work"), path.parent, "--timeout", "2", "--perturb", "1")
    )


_SETTINGS = (
    *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass"),
    *("gpg.program", "diff.external", "diff.x.textconv", "diff.x.command", "filter.x.clean"),
    *("filter.x.smudge", "filter.x.process", "merge.x.driver", "credential.helper", "pager.log"),
    *("remote.origin.uploadpack", "core.gitProxy", "core.alternateRefsCommand"),
    *("interactive.diffFilter", "sequence.editor", "uploadpack.packObjectsHook", "difftool.x.cmd"),
    *("submodule.sub.update", "log.mailmap"),
)


def _repository(folder: Path, chance: random.Random) -> Path:
    """Make a repository of the fake tree that names programs wherever git knows any."""
    tree = fake_tree(folder / "work")
    commit(tree, "one")
    attributes = "* filter=x diff=x merge=x\n"
    subject = chance.choice(("two", f"two {ESCAPES}", "-x", "a\n\nKdelta: x"))
    commit(tree, subject, **{".gitattributes": attributes, "kernel/new.c": "int b;\n"})
    hooks = (
        *("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"),
        *("post-merge", "pre-commit", "fsmonitor-watchman", "post-rewrite"),
    )
    for one in hooks:
        shutil.copy2(program(folder, f"hook-{one}"), tree / f".git/hooks/{one}")
    run = program(folder, "setting")
    other = folder / "work/included"
    other.write_text("".join(_setting(one, str(run)) for one in _SETTINGS))
    with (tree / ".git/config").open("a") as to:
        to.write("".join(_setting(one, str(run)) for one in _SETTINGS))
        to.write(f'[include]\n\tpath = {other}\n[includeIf "gitdir:**"]\n\tpath = {other}\n')
        to.write(
            f'[url "ext::{run}"]\n\tinsteadOf = /\n\tinsteadOf = {tree}\n'
            "[protocol]\n\tallow = always\n"
        )
        to.write('[remote "origin"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n')
        to.write(
            f"\turl = ext::{run}\n[extensions]\n\tpartialClone = origin\n[core]\n\tuntrackedCache\n"
        )
        to.write(f'[alias]\n\tstatus = "!{run}"\n\trev-parse = "!{run}"\n[log]\n\tshowSignature\n')
        if chance.random() < 0.2:
            to.write(
                chance.choice(
                    (
                        "[core]\n\tworktree = /\n",
                        "[core]\n\tbare = true\n",
                        "[\x1b[2J\n",
                        "[core]\n\trepositoryformatversion = 99\n",
                    )
                )
            )
    (tree / "kernel/new.c").write_text("int c;\n")
    (tree / ".gitmodules").write_text(
        f'[submodule "sub"]\n\tpath = sub\n\turl = ext::{run}\n\tupdate = !{run}\n'
    )
    return tree


def _setting(name: str, value: str) -> str:
    section, _, variable = name.rpartition(".")
    head, _, below = section.partition(".")
    return (
        f'[{head} "{below}"]\n\t{variable} = {value}\n'
        if below
        else f"[{head}]\n\t{variable} = {value}\n"
    )


def repository(folder: Path, chance: random.Random) -> Command:
    """Make a repository that names programs."""
    tree = _repository(folder, chance)
    words: tuple[tuple[str | Path, ...], ...] = (
        ("build", f"git:{tree}@HEAD"),
        ("build", f"git:{tree}@HEAD~1"),
        ("build", tree),
        ("series", tree, "HEAD~1..HEAD", "--timeout", "2", "--perturb", "1"),
        ("series", f"git:{tree}@HEAD~1", f"{tree}:HEAD~1..HEAD", "--timeout", "8"),
        ("bisect", "HEAD~1..HEAD", tree, "--timeout", "2", "--perturb", "1"),
        ("build", f"git:{tree}/kernel@HEAD"),
    )
    return Command(chance.choice(words))


def revision(folder: Path, chance: random.Random) -> Command:
    """Make names of revisions that git or a terminal may take for something else."""
    tree = fake_tree(folder / "work")
    commit(tree, "one")
    commit(tree, f"two {ESCAPES}", **{"kernel/new.c": "int b;\n"})
    head = git(tree, "rev-parse", "HEAD").strip()
    for one in ("--upload-pack=x", "HEAD", f"o{chr(0x202E)}x", "a'b$(touch x)"):
        path = tree / ".git/refs/heads" / one
        path.write_text(f"{head}\n")
    odd = (
        "--output=../canary/new",
        "--upload-pack=touch x",
        ESCAPES,
        "HEAD^{/" + "(a+)+$}",
        "",
        "@",
        "-",
        "..",
        "HEAD~99999999999",
        ":/two",
        "HEAD:Makefile",
        "refs/heads/../../config",
        "x" * 100_000,
        "HEAD@{1}",
        f"o{chr(0x202E)}x",
        "a'b$(touch x)",
        "HEAD\nHEAD",
        head[:4],
        "stash@{0}",
        "^HEAD",
        "HEAD...HEAD~1",
    )
    one, other = chance.choice(odd), chance.choice(odd)
    words: tuple[tuple[str | Path, ...], ...] = (
        ("build", f"git:{tree}@{one}"),
        ("series", tree, f"{one}..{other}", "--timeout", "2", "--perturb", "1"),
        ("bisect", f"{one}..{other}", tree, "--timeout", "2", "--perturb", "1"),
        ("bisect", f"HEAD~1..{one}", "-C", tree, "--timeout", "8"),
    )
    return Command(chance.choice(words))
