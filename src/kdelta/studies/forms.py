# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms that what is stored can be shown in: each a pure function of it."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.report.flame import Flame
from kdelta.report.junit import junit_of
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
    printed = KINDS[stored.kind].printed
    return text_of(printed(stored) if printed else document_of(stored))


def html(stored: Stored, flames: Sequence[Flame] = ()) -> str:
    """One page that opens offline, with flame graphs if there are any."""
    # Imported here: what draws its charts takes longer than all else at start.
    from kdelta.report.html.page import page_of  # noqa: PLC0415

    document = document_of(stored, flames)
    return page_of(document, text_of(document))


def mail(stored: Stored) -> str:
    """As a mail, or as several."""
    own = KINDS[stored.kind].mails
    return (own(stored) if own else "") or mail_of(document_of(stored))


def find_form(name: str) -> Form:
    """The form of that name; UserError, with the nearest, if there is none."""
    if name in FORMS:
        return FORMS[name]
    near = difflib.get_close_matches(name.lower(), FORMS, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]}? " if near else ""
    instead = (name, near[0] if near else "text")
    raise UserError(f"no such format: {name}", f"{meant}there is {', '.join(FORMS)}", instead)


def form_of_file(name: str) -> str:
    """The name of the form that a file of that name is written in; without an ending, text.

    UserError for an ending that no form has.
    """
    ending = Path(name).suffix
    found = next((key for key, form in FORMS.items() if ending.lower() in form.endings), "")
    if found or not ending:
        return found or "text"
    listed = ", ".join(f"{form.endings[0]} ({key})" for key, form in FORMS.items())
    raise UserError(
        f"cannot write {name}: no format ends with {ending}",
        f"name a file that ends with one of {listed}, or add --format FORMAT",
        (name, str(Path(name).with_suffix(".html"))),
    )


FORMS: Mapping[str, Form] = {
    "text": Form("for a terminal, as the study printed it", text, (".txt",)),
    "mail": Form("to be sent, with its headers", mail, (".eml", ".mbox", ".mail")),
    "html": Form("one page that opens offline in any browser", html, (".html", ".htm")),
    "json": Form(
        "for programs, with a schema",
        lambda s: document_text(KINDS[s.kind].json_of(s.reports), s.version, s.study),
        (".json",),
    ),
    "ktap": Form(
        "for the kernel's test tools", lambda s: ktap_of(document_of(s)), (".ktap", ".tap")
    ),
    "junit": Form("for CI servers", lambda s: junit_of(document_of(s)), (".xml",)),
    "markdown": Form(
        "to be pasted as a comment, details folded",
        lambda s: markdown_of(document_of(s)),
        (".md", ".markdown"),
    ),
}
"""By name; the names are those of --format."""
