# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as a mail that can be sent as it is: `git send-email FILE`, `mutt -H FILE`.

The headers are those of RFC 5322, made by Python's own library; the text is plain, in lines of 76.
"""

import datetime
from collections.abc import Mapping, Sequence
from email.header import Header
from email.utils import format_datetime, formataddr, parseaddr

from kdelta.report.document import Document
from kdelta.report.text import WIDTH, letter_of

_OF_PEOPLE = ("To", "Cc")


def mail_of(document: Document) -> str:
    """The mail."""
    subject = f"[kdelta] {document.title}"
    return message({"Subject": subject}, letter_of(document), document.made.started)


def mbox_of(mails: Sequence[str], started: float) -> str:
    """The mail, or in the form of an mbox if there are more."""
    if len(mails) == 1:
        return mails[0]
    line = f"From kdelta {_moment(started).ctime()}\n"
    return "\n".join(line + _quoted_from(one) for one in mails)


def message(headers: Mapping[str, str], body: str, started: float) -> str:
    """A mail with its headers, which are encoded as they must be. Whose it is its sender adds."""
    text = "".join(
        char if char == "\n" or char.isprintable() else ascii(char)[1:-1] for char in body
    )
    charset = "us-ascii" if text.isascii() else "utf-8"
    lines = [_header(name, value) for name, value in headers.items()]
    lines += [
        f"Date: {format_datetime(_moment(started))}",
        "MIME-Version: 1.0",
        f"Content-Type: text/plain; charset={charset}",
        f"Content-Transfer-Encoding: {'7bit' if text.isascii() else '8bit'}",
    ]
    return "\n".join(lines) + f"\n\n{text}"


def _moment(started: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(started, datetime.UTC)


def _header(name: str, text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    person, address = parseaddr(plain)
    if name in _OF_PEOPLE and address:
        return f"{name}: {formataddr((person, address))}"
    return f"{name}: {Header(plain, maxlinelen=WIDTH, header_name=name).encode()}"


def _quoted_from(text: str) -> str:
    """The body without what a reader of an mbox would take for the next mail."""
    return "".join(
        f">{line}" if line.startswith("From ") else line for line in text.splitlines(keepends=True)
    )
