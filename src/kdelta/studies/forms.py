# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms that what is stored can be shown in: each a pure function of it."""

import difflib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from kdelta.report.flame import Flame
from kdelta.report.junit import junit_of
from kdelta.report.kind import ALL
from kdelta.report.ktap import ktap_of
from kdelta.report.mail import mail_of
from kdelta.report.markdown import markdown_of
from kdelta.report.stored import Stored
from kdelta.report.text import text_of
from kdelta.spec.errors import UserError
from kdelta.studies.documents import document_text
from kdelta.studies.kinds import KINDS, document_of

Render = Callable[[Stored], str]


class Form(msgspec.Struct, frozen=True):
    """A form: what it is for, in a few words, what makes it, and how its files' names end."""

    purpose: str
    render: Render
    endings: tuple[str, ...]


def text(stored: Stored) -> str:
    """Return it as the study itself printed it."""
    kind, whole = KINDS[stored.kind], ALL in stored.shown
    if kind.text and not whole:
        return kind.text(stored)
    # All of what has a first screen is what its command prints with --all.
    if kind.printed and (kind.text or not whole):
        return text_of(kind.printed(stored))
    return text_of(document_of(stored))


def json(stored: Stored) -> str:
    """As the study itself prints it with --json."""
    return document_text(KINDS[stored.kind].json_of(stored.reports), stored.version)


def html(stored: Stored, flames: Sequence[Flame] = ()) -> str:
    """One page that opens offline, with flame graphs if there are any."""
    # Imported here: what draws its charts takes longer than all else at start.
    from kdelta.report.html.page import page_of  # noqa: PLC0415

    document = document_of(stored, flames)
    whole = msgspec.structs.replace(stored, shown={**stored.shown, ALL: 1})
    return page_of(document, text(whole))


def mail(stored: Stored) -> str:
    """As a mail, or as several."""
    own = KINDS[stored.kind].mails
    return (own(stored) if own else "") or mail_of(document_of(stored))


def markdown(stored: Stored) -> str:
    """As a comment."""
    return markdown_of(document_of(stored))


def ktap(stored: Stored) -> str:
    """As the kernel's test tools read it."""
    return ktap_of(document_of(stored))


def junit(stored: Stored) -> str:
    """As CI servers read it."""
    return junit_of(document_of(stored))


def find_form(name: str) -> Form:
    """The form of that name; UserError, with the nearest, if there is none."""
    if name in FORMS:
        return FORMS[name]
    near = difflib.get_close_matches(name.lower(), FORMS, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]}? " if near else ""
    raise UserError(f"no such format: {name}", f"{meant}there is {', '.join(FORMS)}")


def form_of_file(name: str) -> str:
    """The name of the form that a file of that name is written in: text if nothing says it."""
    ending = next(
        (one for form in FORMS.values() for one in form.endings if name.endswith(one)), ""
    )
    return next((key for key, form in FORMS.items() if ending in form.endings), "text")


FORMS: Mapping[str, Form] = {
    "text": Form("for a terminal, as the study printed it", text, (".txt",)),
    "mail": Form("to be sent, with its headers", mail, (".eml", ".mbox", ".mail")),
    "html": Form("one page that opens offline in any browser", html, (".html", ".htm")),
    "json": Form("for programs, with a schema", json, (".json",)),
    "ktap": Form("for the kernel's test tools", ktap, (".ktap", ".tap")),
    "junit": Form("for CI servers", junit, (".xml",)),
    "markdown": Form("to be pasted as a comment, details folded", markdown, (".md", ".markdown")),
}
"""By name; the names are those of --format."""
