# SPDX-License-Identifier: GPL-2.0-or-later
"""A mailbox -> its patches. Cover letters and replies are left out, and named."""

import email.parser
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kdelta.kernels.sources.diffs import Hunk, read_diff
from kdelta.kernels.sources.git import GitResult, check_space, run_git
from kdelta.kernels.sources.patches import FIELD, SUBJECT_PREFIX, Patch, has_diff
from kdelta.spec.errors import UserError

_MAIL = re.compile(
    rb"From |(?:[\w-]+:.*\n(?:[ \t].*\n)*)*(?:Message-I[dD]|MIME-Version):", re.IGNORECASE
)
_REPLY = re.compile(r"(?:re|aw|fwd?|wg|antw|sv|vs)(?:\[\d+\])?\s*:", re.IGNORECASE)
_QUOTED = re.compile(r"^>", re.MULTILINE)
_TAGGED = re.compile(r"\[[^\]]*\b(?:PATCH|RFC)\b", re.IGNORECASE)
_VERSION = re.compile(r"\[[^\]]*\bv(\d+)\b[^\]]*\]", re.IGNORECASE)
_NO_SUBJECT = "a mail without a subject"


class Mailbox(msgspec.Struct, frozen=True):
    """The patches of a mailbox, in order, and what was left out of it, in a clause each."""

    patches: tuple[Patch, ...]
    left_out: tuple[str, ...]


class _Mail(msgspec.Struct, frozen=True):
    """A mail: its patch, its subject as it stands, and whether it answers another mail."""

    patch: Patch
    subject: str
    is_answer: bool

    @property
    def is_reply(self) -> bool:
        """Whether it talks about a patch, rather than being one that a thread begins with."""
        if _REPLY.match(SUBJECT_PREFIX.sub("", self.subject)):
            return True
        quotes = self.is_answer and bool(_QUOTED.search(self.patch.message))
        return quotes and not _TAGGED.match(self.subject)

    @property
    def has_diff(self) -> bool:
        return has_diff(self.patch.content)

    @property
    def named(self) -> str:
        return f'"{self.subject}"' if self.subject else _NO_SUBJECT


def is_mailbox(content: bytes) -> bool:
    """Whether it begins as a mail does, or as a mailbox of several."""
    return _MAIL.match(content) is not None


def read_mailbox(file: Path, content: bytes) -> Mailbox:
    """The patches of the mailbox that a file holds. UserError if there are none, or if it leaves
    open which are meant.
    """
    mails = list(_mails(file, content))
    kept: list[_Mail] = []
    left_out = []
    one_reply = _only_reply(file, mails)
    _must_be_one_version(file, [mail for mail in mails if mail.has_diff and not mail.is_reply])
    for mail in mails:
        if not mail.has_diff:
            kind = "a reply" if mail.is_reply else "a mail without a patch"
            left_out.append(f"{kind}, {mail.named}")
        elif mail.is_reply and not one_reply:
            left_out.append(f"a reply with another diff, {mail.named}")
        elif _repeats(mail, kept):
            left_out.append(f"a later diff of the same lines, {mail.named}")
        else:
            kept.append(mail)
    if not kept:
        raise UserError(
            f"{file} holds no patch: it is a mailbox, and none of its mails has a diff",
            "a patch is what git diff or diff -u prints",
        )
    patches = [mail.patch for mail in kept]
    if len(patches) == 1:
        patches = [msgspec.structs.replace(patches[0], name=file.name)]
    return Mailbox(tuple(patches), tuple(left_out))


def _only_reply(file: Path, mails: Sequence[_Mail]) -> bool:
    """Whether all patches are in replies, and there is one; UserError if there are several."""
    with_diff = [mail for mail in mails if mail.has_diff]
    if not with_diff or not all(mail.is_reply for mail in with_diff):
        return False
    if len(with_diff) > 1:
        named = ", ".join(mail.named for mail in with_diff)
        raise UserError(
            f"{file} has {len(with_diff)} replies with a diff, and no other patch: {named}",
            "save the mail that is meant in a file of its own",
        )
    return True


def _repeats(mail: _Mail, kept: Sequence[_Mail]) -> bool:
    """Whether the mail changes lines that the patch before it in that file has changed, and so does
    not apply after it.
    """
    diff = read_diff(mail.patch.content)
    for one in reversed(kept):
        before = read_diff(one.patch.content)
        if not set(before.files).isdisjoint(diff.files):
            return not set(map(_place, diff.hunks)).isdisjoint(map(_place, before.hunks))
    return False


def _place(hunk: Hunk) -> tuple[str, int, tuple[bytes, ...]]:
    return hunk.file, hunk.line, hunk.expected


def _must_be_one_version(file: Path, mails: Sequence[_Mail]) -> None:
    versions: dict[str, int] = {}
    for mail in mails:
        subject, version = mail.patch.subject, _version(mail.subject)
        if (other := versions.setdefault(subject, version)) != version:
            raise UserError(
                f'{file} has two versions of "{subject}": v{other} and v{version}',
                "save the patches of one version, as b4 am does",
            )


def _version(subject: str) -> int:
    return int(match[1]) if (match := _VERSION.search(subject)) else 1


def _mails(file: Path, content: bytes) -> Iterator[_Mail]:
    """The mails, decoded."""
    keep = [] if content.partition(b"\n")[0].endswith(b"\r") else ["--keep-cr"]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _git(["mailsplit", "-b", *keep, f"-o{folder}"], work, file, content)
        for path in sorted(work.glob("[0-9]*"), key=lambda one: int(one.name)):
            mail = path.read_bytes()
            # -k: with Re: and the version, which git leaves out otherwise.
            said = _git(["mailinfo", "-k", "message", "patch"], work, file, mail)
            fields = {m[1].lower(): m[2].strip() for m in FIELD.finditer(said.text)}
            subject = fields.get("subject", "")
            bare = SUBJECT_PREFIX.sub("", subject)
            author, address = fields.get("author", ""), fields.get("email", "")
            patch = Patch(
                f"{file.name}: " + (f'"{bare}"' if bare else f"mail {int(path.name)}"),
                (work / "patch").read_bytes(),
                subject=bare,
                author=f"{author} <{address}>" if address else "",
                date=fields.get("date", ""),
                message=(work / "message").read_text(errors="replace").strip(),
            )
            headers = email.parser.BytesHeaderParser().parsebytes(mail)
            yield _Mail(patch, subject, "In-Reply-To" in headers)


def _git(words: list[str], cwd: Path, file: Path, stdin: bytes) -> GitResult:
    result = run_git(words, cwd=cwd, stdin=stdin)
    check_space(result, cwd)
    return result.or_raise(UserError, f"{file} cannot be read as mail")
