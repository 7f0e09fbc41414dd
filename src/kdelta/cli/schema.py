# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta schema`: the JSON Schemas of what kdelta prints."""

from typing import Annotated

import typer

from kdelta.cli.output import emit
from kdelta.studies.documents import DOCUMENTS, schema_text


def schema(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="A document, such as kdelta.compare/2.")
    ] = "",
) -> None:
    """Print the JSON Schema of a document.

    Without NAME, list the documents.
    """
    emit(schema_text(name) if name else "".join(f"{one}\n" for one in DOCUMENTS))
