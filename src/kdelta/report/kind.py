# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kind of study is to its report: the one record that all forms and the store go by."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kdelta.report.document import Document
from kdelta.report.stored import Stored

ALL = "all"
"""Of `Stored.shown`: that all was printed, not the first screen alone."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of study. `studies/kinds.py` lists them by the names of their commands.

    report    type of its report, of which a stored study has one or more
    json      name of its JSON document, with its number
    document  the document that its forms are rendered from
    printed   the document of what a command prints, where that is less than all of it
    mails     the mails that it is sent as; None, or an empty text, for the document as one mail
    question  what was asked, as a sentence, of all reports; None for one that the store has not
    whole     type of its JSON document, and what makes one of the reports, where it is not the
              only report itself
    """

    report: type[msgspec.Struct]
    json: str
    document: Callable[[Stored], Document]
    printed: Callable[[Stored], Document] | None = None
    mails: Callable[[Stored], str] | None = None
    question: Callable[..., str] | None = None
    whole: tuple[type[msgspec.Struct], Callable[[Sequence[Any]], msgspec.Struct]] | None = None

    @property
    def json_type(self) -> type[msgspec.Struct]:
        return self.whole[0] if self.whole else self.report

    def json_of(self, reports: Sequence[Any]) -> msgspec.Struct:
        """What its JSON document is made of."""
        return self.whole[1](reports) if self.whole else reports[0]
