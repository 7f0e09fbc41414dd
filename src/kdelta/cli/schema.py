# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta schema`: the JSON Schemas of what kdelta prints."""

from typing import Annotated

from kdelta.cli.output import emit
from kdelta.spec.option import Argument
from kdelta.studies.documents import DOCUMENTS, schema_text


def schema(
    name: Annotated[
        str,
        Argument(
            metavar="[NAME]",
            help="A document, such as kdelta.compare/4.",
            values="|".join(DOCUMENTS),
        ),
    ] = "",
) -> None:
    """Print the JSON Schema of a document.

    Without NAME, list the documents.
    """
    emit(schema_text(name) if name else "".join(f"{one}\n" for one in DOCUMENTS))
