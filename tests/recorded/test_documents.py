# SPDX-License-Identifier: GPL-2.0-or-later
"""Documents that are recorded in docs are as their schemas say, and can be read."""

from pathlib import Path

from reading import as_now, read_document

from tests.report.test_documents import validator

DOCS = Path(__file__).parents[2] / "docs"


def test_documents_recorded_ones_validate_and_can_be_read() -> None:
    recorded = [path.read_text() for path in DOCS.rglob("*.json")]
    texts = [text for text in recorded if '"schema": "kdelta.' in text[:40]]
    assert len(texts) >= 11
    for text in texts:
        document = as_now(text)
        validator(document["schema"]).validate(document)
        assert read_document(text).kdelta == document["kdelta"]
