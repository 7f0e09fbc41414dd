# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of recorded documents as the structs that they were written from."""

from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.search_model import RegionSum
from kdelta.studies.search.model import AblatedRegion, Means

_Model = TypeVar("_Model")


def model(part: Any, kind: type[_Model]) -> _Model:
    """Return a part of a document as a value of its type."""
    return msgspec.convert(
        msgspec.to_builtins(part), kind, dec_hook=lambda _kind, value: Fraction(value)
    )


def effects_of(part: Any) -> dict[str, Estimate]:
    """Return what a part of a search does, by region."""
    return model(part.effects, dict[str, Estimate])


def means_of(document: Any) -> Means:
    """Return the means over the regions of a search."""
    known = model(document.mean, RegionSum) if document.mean else None
    return Means(model(document.regions, tuple[AblatedRegion, ...]), known)
